// Sweeps on a device: a thread per cell (the baseline of the 2023 study, section 3.2), threads that pass through the
// layers, reading neighbours through the cache or from shared memory (White & Dongarra 2011, IV-E), and several time
// steps in one pass.
#pragma once

#include "haloscope/device/geometry.hpp"
#include "haloscope/device/team.hpp"

namespace haloscope::device::HALOSCOPE_BACKEND {

template <class Form>
struct NaiveSweep {
  using T = typename Form::Real;
  static constexpr BlockShape usual{Form::dims == 2 ? 256 : 64, Form::dims == 2 ? 1 : 4, 1};
  Form form;
  Geometry<T> g;

  HALOSCOPE_FUNCTION void operator()(const Team& team) const {
    team.each([&](int thread) {
      const auto c = g.cell(team.block(), thread);
      if (!g.written(c)) return;
      Column<T> at(g, c.x, c.y);
      for (std::int32_t l = c.begin; l < c.end; ++l) {
        at.go(g.layer_of(l - 1));
        T sum = form.template layer<-1>(at, T{});
        at.go(g.layer_of(l));
        sum = form.template layer<0>(at, sum);
        at.go(g.layer_of(l + 1));
        g.out[c.x + c.y * g.row + l * g.layer] = form.template layer<1>(at, sum);
      }
    });
  }
};

/// What a thread needs of one layer, in registers.
template <class Form>
struct Neighbours {
  using T = typename Form::Real;
  T value[3][3]{};
  template <class At>
  HALOSCOPE_FUNCTION void read(const At& at) {
    HALOSCOPE_UNROLL()
    for (int j = -1; j <= 1; ++j) {
      HALOSCOPE_UNROLL()
      for (int i = -1; i <= 1; ++i)
        if (Form::reads(i, j)) value[j + 1][i + 1] = at(i, j);
    }
  }
  HALOSCOPE_FUNCTION T operator()(int i, int j) const { return value[j + 1][i + 1]; }
};

/// Each layer is read once and serves the sums of three layers: one begun, one going on, one finished. It is read
/// several layers ahead of its use, so that threads never wait for memory layer by layer.
template <class Form, bool Wraps>
struct StreamSweep {
  using T = typename Form::Real;
  static constexpr BlockShape usual{Form::dims == 2 ? 128 : 32, Form::dims == 2 ? 1 : 8, Form::dims == 2 ? 64 : 32};
  static constexpr int ahead = Form::ahead, far_ahead = 8;  // layers: to registers, at least to the cache
  Form form;
  Geometry<T> g;

  HALOSCOPE_FUNCTION void operator()(const Team& team) const {
    team.each([&](int thread) {
      const auto c = g.cell(team.block(), thread);
      if (!g.written(c)) return;
      Column<T, Wraps> at(g, c.x, c.y);
      at.go(g.in + std::int64_t{c.begin - 2} * g.layer);
      Neighbours<Form> layers[ahead];
      const auto read = [&](Neighbours<Form>& layer, std::int32_t l) {
        if (l > c.end) return;
        Wraps ? at.go(g.layer_of(l)) : at.step(g.layer);
        layer.read(at);
        if (ahead < far_ahead && l + far_ahead < c.end) prefetch(at.here + far_ahead * g.layer);
      };
      HALOSCOPE_UNROLL()
      for (int k = 0; k < ahead; ++k) read(layers[k], c.begin - 1 + k);
      T here{}, next{};
      T* out = g.out + c.x + c.y * g.row + (c.begin - 2) * g.layer;
      for (std::int32_t l = c.begin - 1; l <= c.end; l += ahead) {
        HALOSCOPE_UNROLL()
        for (int k = 0; k < ahead; ++k, out += g.layer) {
          const T done = form.template layer<1>(layers[k], here);
          here = form.template layer<0>(layers[k], next);
          next = form.template layer<-1>(layers[k], T{});
          read(layers[k], l + k + ahead);
          if (l + k > c.begin && l + k <= c.end) *out = done;
        }
      }
    });
  }
};

/// A layer of the block and of the cells around it, in shared memory.
template <class T>
struct SharedLayer {
  const T* centre;
  std::int32_t pitch;
  HALOSCOPE_FUNCTION T operator()(int i, int j) const { return centre[i + j * pitch]; }
};

/// As StreamSweep, but each layer is staged in shared memory first, in two buffers that take turns.
template <class Form>
struct SharedSweep {
  using T = typename Form::Real;
  static constexpr BlockShape usual{Form::dims == 2 ? 256 : 32, Form::dims == 2 ? 1 : 8, Form::dims == 2 ? 64 : 32};
  static constexpr int ring = Form::dims == 2 ? 0 : 1;  // rows around the block's own
  Form form;
  Geometry<T> g;

  static std::size_t shared_bytes(const Geometry<T>& g) {
    return 2 * sizeof(T) * static_cast<std::size_t>(g.sx + 2) * static_cast<std::size_t>(g.sy + 2 * ring);
  }

  HALOSCOPE_FUNCTION void operator()(const Team& team) const {
    const std::int32_t pitch = g.sx + 2, cells = pitch * (g.sy + 2 * ring);
    T* const buffers = team.shared<T>();
    PerThread<T> here, next;
    const auto first = g.cell(team.block(), 0);
    for (std::int32_t l = first.begin - 1; l <= first.end; ++l) {
      T* const tile = buffers + (l & 1) * cells;
      const T* const layer = g.layer_of(l);
      team.each([&](int thread) {
        for (std::int32_t ty = thread / g.sx; ty < g.sy + 2 * ring; ty += g.sy)
          for (std::int32_t tx = thread % g.sx; tx < pitch; tx += g.sx) {
            const std::int32_t x = first.x - 1 + tx, y = first.y - ring + ty;
            if (x <= g.x1 && y < g.y1 + ring) tile[ty * pitch + tx] = load(layer + g.place(x, y));
          }
      });
      team.sync();
      team.each([&](int thread) {
        const auto c = g.cell(team.block(), thread);
        if (!g.written(c)) return;
        const SharedLayer<T> at{tile + (thread / g.sx + ring) * pitch + thread % g.sx + 1, pitch};
        if (l > c.begin) g.out[c.x + c.y * g.row + (l - 1) * g.layer] = form.template layer<1>(at, here[thread]);
        if (l >= c.begin && l < c.end) here[thread] = form.template layer<0>(at, next[thread]);
        if (l < c.end) next[thread] = form.template layer<-1>(at, T{});
      });
    }
  }
};

/// `Levels` time steps in one pass through the layers, for stencils that reach only straight up and down: step s + 1 of
/// a layer is finished as soon as step s of the next layer is there, all in registers; neighbours within the layer come
/// from shared memory. Blocks overlap by `Levels` cells at each side, which both compute.
template <class Form, int Levels>
struct FusedSweep {
  using T = typename Form::Real;
  static constexpr BlockShape usual{Form::dims == 2 ? 256 : 32, Form::dims == 2 ? 1 : 16, Form::dims == 2 ? 512 : 128};
  static constexpr int ring = Form::dims == 2 ? 0 : 1;
  Form form;
  Geometry<T> g;

  struct State {
    T ahead;                       // of the next layer, read while this one is worked on
    T value[Levels];               // step s of the layer that step s has come to
    T here[Levels], next[Levels];  // sums of step s + 1: going on, begun
  };

  static std::size_t shared_bytes(const Geometry<T>& g) {
    return 2 * Levels * sizeof(T) * static_cast<std::size_t>(g.sx + 2) * static_cast<std::size_t>(g.sy + 2 * ring);
  }

  HALOSCOPE_FUNCTION void operator()(const Team& team) const {
    const std::int32_t pitch = g.sx + 2, cells = pitch * (g.sy + 2 * ring);
    T* const buffers = team.shared<T>();
    PerThread<State> states;
    const auto first = g.cell(team.block(), 0);
    const std::int32_t begin = first.begin - Levels, end = first.end + Levels;
    const auto read = [&](int thread, std::int32_t l) {
      const auto c = g.cell(team.block(), thread);
      const bool there = l < end && c.x < g.x1 + Levels && c.y < g.y1 + ring * Levels;
      return there ? load(g.layer_of(l) + g.place(c.x, c.y)) : T{};
    };
    team.each([&](int thread) {
      states[thread] = State{};
      states[thread].ahead = read(thread, begin);
    });
    for (std::int32_t l = begin; l < end; ++l) {
      T* const tiles = buffers + (l & 1) * Levels * cells;
      team.each([&](int thread) {
        const auto c = g.cell(team.block(), thread);
        State& s = states[thread];
        T value = s.ahead;
        s.ahead = read(thread, l + 1);
        const std::int32_t n = (thread / g.sx + ring) * pitch + thread % g.sx + 1;
        HALOSCOPE_UNROLL()
        for (int step = 0; step < Levels; ++step) {
          s.value[step] = value;
          tiles[step * cells + n] = value;
          value = form.template layer<1>([&](int, int) { return value; }, s.here[step]);
        }
        const std::int32_t done = l - Levels;  // the layer whose last step is now finished
        const std::int32_t tx = thread % g.sx, ty = thread / g.sx;
        const bool inside = tx >= Levels && tx < g.sx - Levels && (ring == 0 || (ty >= Levels && ty < g.sy - Levels));
        if (inside && g.written(c) && done >= c.begin) g.out[c.x + c.y * g.row + done * g.layer] = value;
      });
      team.sync();
      team.each([&](int thread) {
        State& s = states[thread];
        HALOSCOPE_UNROLL()
        for (int step = 0; step < Levels; ++step) {
          const SharedLayer<T> tile{tiles + step * cells + (thread / g.sx + ring) * pitch + thread % g.sx + 1, pitch};
          const auto at = [&](int i, int j) { return i == 0 && j == 0 ? s.value[step] : tile(i, j); };
          s.here[step] = form.template layer<0>(at, s.next[step]);
          s.next[step] = form.template layer<-1>([&](int, int) { return s.value[step]; }, T{});
        }
      });
    }
  }
};

}  // namespace haloscope::device::HALOSCOPE_BACKEND
