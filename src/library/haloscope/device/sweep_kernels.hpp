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

/// The data that a thread needs of one layer, in registers.
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

/// Each layer is read once and serves the sums of three layers: one begun, one continued, one finished. It is read
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

/// The reads of WideSweep's threads. The values of each form are the fastest ones on an H200.
struct WideReading {
  bool early;        ///< whole layers to registers some layers ahead; otherwise only the thread's cells
  int far_ahead;     ///< layers to the last-level cache, at least; 0: none
  int most_threads;  ///< of a block; a kernel may use registers until no more threads than this find room
  BlockShape usual;
};

/// Cells of a thread in one layer, in `rows` rows, and the cells around them.
template <class Form, int rows>
struct Patch {
  using T = typename Form::Real;
  static constexpr int width = 16 / sizeof(T);
  using Row = Pack<T, width>;
  Row own[rows], before, after;
  T west[rows + 2], east[rows + 2];

  HALOSCOPE_FUNCTION const Row& row(int j) const { return j < 0 ? before : j < rows ? own[j] : after; }
  HALOSCOPE_FUNCTION T operator()(int i, int j) const {
    return i < 0 ? west[j + 1] : i < width ? row(j).value[i] : east[j + 1];
  }
};

/// The part of the region that a thread with several cells has.
/// @tparam whole  it has all its cells, and no other thread shares its rows.
template <class T, bool whole>
struct Part {
  static constexpr int width = 16 / sizeof(T);
  std::int32_t begin, end;  // cells of its packs that are in the region: 0 to `width`, or not all of them
  std::int32_t first_row;   // earlier rows are shared with earlier threads, which write them

  /// @param around  cells beyond the region that are needed
  HALOSCOPE_FUNCTION Pack<T, width> cells(const T* row, int around) const {
    return load_pack<width>(row, begin - around, end + around);
  }
  HALOSCOPE_FUNCTION T west(const T* row) const { return whole || begin <= 0 ? load(row - 1) : T{}; }
  HALOSCOPE_FUNCTION T east(const T* row) const { return whole || end >= width ? load(row + width) : T{}; }
  HALOSCOPE_FUNCTION void write(T* row, int j, const Pack<T, width>& values) const {
    if (!whole && j < first_row) return;
    const bool all = whole || (begin <= 0 && end >= width);
    if (all) store_pack(row, values);
    HALOSCOPE_UNROLL()
    for (int i = 0; i < width; ++i)
      if (!all && i >= begin && i < end) row[i] = values.value[i];
  }
};

/// As StreamSweep where nothing wraps around, but each thread has several cells: the cells of one load of 16 bytes, in
/// each of several rows. It may be launched where all rows begin at multiples of 16 bytes, and the region has
/// that number of rows.
template <class Form>
struct WideSweep {
  using T = typename Form::Real;
  static constexpr int width = 16 / sizeof(T), rows = Form::rows, ring = 1;
  static constexpr BlockShape usual = Form::wide.usual;
  static constexpr int most_threads = Form::wide.most_threads;
  static constexpr int ahead = 2;  // layers to registers
  Form form;
  Geometry<T> g;

  template <bool whole>
  HALOSCOPE_FUNCTION void sweep(const typename Geometry<T>::Cell& c, const Part<T, whole>& part) const {
    constexpr bool early = Form::wide.early;
    constexpr int far_ahead = Form::wide.far_ahead;
    const T* at = g.in + c.x + c.y * g.row + (c.begin - 1) * g.layer;
    T* out = g.out + c.x + c.y * g.row + (c.begin - 2) * g.layer;
    Patch<Form, rows> patches[ahead];
    Pack<T, width> here[rows]{}, next[rows]{};
    const auto read_around = [&](Patch<Form, rows>& patch, const T* layer) {
      constexpr int around = Form::reads(1, 1) ? 1 : 0;
      patch.before = part.cells(layer - g.row, around), patch.after = part.cells(layer + rows * g.row, around);
      HALOSCOPE_UNROLL()
      for (int j = -ring; j < rows + ring; ++j) {
        if ((j < 0 || j == rows) && !Form::reads(1, 1)) continue;
        patch.west[j + ring] = part.west(layer + j * g.row);
        patch.east[j + ring] = part.east(layer + j * g.row);
      }
    };
    const auto read = [&](Patch<Form, rows>& patch, const T* layer) {
      HALOSCOPE_UNROLL()
      for (int j = 0; j < rows; ++j) patch.own[j] = part.cells(layer + j * g.row, 1);
      if (early) read_around(patch, layer);
    };
    const auto announce = [&](std::int32_t l, const T* layer) {
      HALOSCOPE_UNROLL()
      for (int j = 0; j < rows; ++j)
        if (far_ahead > ahead && l <= c.end) prefetch(layer + j * g.row);
    };
    HALOSCOPE_UNROLL()
    for (int k = 0; k < ahead; ++k) read(patches[k], at + k * g.layer);  // there are 3 layers at least
    for (int k = ahead; k < far_ahead; ++k) announce(c.begin - 1 + k, at + k * g.layer);
    for (std::int32_t l = c.begin - 1; l <= c.end; l += ahead) {
      HALOSCOPE_UNROLL()
      for (int k = 0; k < ahead; ++k, out += g.layer) {
        Patch<Form, rows>& patch = patches[k];
        if (!early) read_around(patch, at);
        announce(l + k + far_ahead, at + far_ahead * g.layer);
        HALOSCOPE_UNROLL()
        for (int j = 0; j < rows; ++j) {
          Pack<T, width> done;
          HALOSCOPE_UNROLL()
          for (int i = 0; i < width; ++i) {
            const auto around = [&](int di, int dj) { return patch(i + di, j + dj); };
            T &mid = here[j].value[i], &begun = next[j].value[i];
            done.value[i] = form.template layer<1>(around, mid);
            mid = form.template layer<0>(around, begun);
            begun = form.template layer<-1>(around, T{});
          }
          if (l + k > c.begin && l + k <= c.end) part.write(out + j * g.row, j, done);
        }
        if (l + k + ahead <= c.end) read(patch, at + ahead * g.layer);
        if (l + k < c.end) at += g.layer;  // there may be no memory beyond
      }
    }
  }

  HALOSCOPE_FUNCTION void operator()(const Team& team) const {
    team.each([&](int thread) {
      const auto first = g.template cell<width, rows>(team.block(), 0);
      auto c = g.template cell<width, rows>(team.block(), thread);
      if (first.x >= g.x0 && first.x + g.sx * width <= g.x1 && first.y + g.sy * rows <= g.y1)
        return sweep(c, Part<T, true>{0, width, 0});
      if (c.x >= g.x1 || c.y >= g.y1) return;
      Part<T, false> part{g.x0 - c.x, g.x1 - c.x, 0};
      if (c.y + rows > g.y1) part.first_row = c.y + rows - g.y1, c.y = g.y1 - rows;
      sweep(c, part);
    });
  }
};

/// As WideSweep in two dimensions, where the sums of a thread are few: it reads everything that its rows need together,
/// and writes them. The threads of a block lie side by side and above each other, and blocks follow each other as
/// memory does, which then opens few of its pages at a time.
template <class Form>
struct FlatSweep {
  using T = typename Form::Real;
  static constexpr int width = 16 / sizeof(T), rows = 2;  // of a thread
  static constexpr BlockShape usual{128, 1, 8};
  static constexpr int many_threads = 512;  // of a block, which passes through more rows in turn
  Form form;
  Geometry<T> g;
  std::int32_t deep;  // threads above each other

  /// A thread's cells, all of which are in the region, and so are two rows.
  HALOSCOPE_FUNCTION void sweep_pack(const T* at, T* out) const {
    Pack<T, width> own[rows + 2];
    T west[rows + 2], east[rows + 2];
    HALOSCOPE_UNROLL()
    for (int k = 0; k < rows + 2; ++k) {
      const T* row = at + (k - 1) * g.layer;
      own[k] = load_pack<width>(row, 0, width);
      if (k == 0 || k > rows) continue;
      west[k] = load(row - 1);
      east[k] = load(row + width);
    }
    HALOSCOPE_UNROLL()
    for (int k = 1; k <= rows; ++k) {
      Pack<T, width> done;
      HALOSCOPE_UNROLL()
      for (int i = 0; i < width; ++i) {
        const auto here = [&](int di, int) {
          return i + di < 0 ? west[k] : i + di < width ? own[k].value[i + di] : east[k];
        };
        const T begun = form.template layer<-1>([&](int, int) { return own[k - 1].value[i]; }, T{});
        const T mid = form.template layer<0>(here, begun);
        done.value[i] = form.template layer<1>([&](int, int) { return own[k + 1].value[i]; }, mid);
      }
      store_pack(out + (k - 1) * g.layer, done);
    }
  }

  /// The cells of a thread that are in the region, one by one: few threads have others next to them.
  HALOSCOPE_FUNCTION void sweep_cells(const typename Geometry<T>::Cell& c, std::int32_t l, const T* at, T* out) const {
    const std::int32_t end = l + rows < c.end ? l + rows : c.end;
    HALOSCOPE_UNROLL(1)
    for (; l < end; ++l, at += g.layer, out += g.layer) {
      HALOSCOPE_UNROLL(1)
      for (int i = 0; i < width; ++i)
        if (c.x + i >= g.x0 && c.x + i < g.x1) sweep_cell(at + i, out + i);
    }
  }
  HALOSCOPE_FUNCTION void sweep_cell(const T* at, T* out) const {
    const T *before = at - g.layer, *after = at + g.layer;
    const T begun = form.template layer<-1>([&](int di, int) { return load(before + di); }, T{});
    const T mid = form.template layer<0>([&](int di, int) { return load(at + di); }, begun);
    *out = form.template layer<1>([&](int di, int) { return load(after + di); }, mid);
  }

  HALOSCOPE_FUNCTION void operator()(const Team& team) const {
    team.each([&](int thread) {
      const auto c = g.template cell<width>(team.block(), thread % g.sx);
      const bool whole = c.x >= g.x0 && c.x + width <= g.x1;
      for (std::int32_t l = c.begin + thread / g.sx * rows; l < c.end; l += deep * rows) {
        const T* at = g.in + c.x + l * g.layer;
        T* out = g.out + c.x + l * g.layer;
        if (whole && l + rows <= c.end) {
          sweep_pack(at, out);
          continue;
        }
        sweep_cells(c, l, at, out);
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

/// As StreamSweep, but each layer is staged in shared memory first, several layers ahead, in buffers that take turns.
/// @tparam shares  max cells of a buffer that a thread stages
template <class Form, int shares = 2>
struct SharedSweep {
  using T = typename Form::Real;
  static constexpr BlockShape usual{Form::dims == 2 ? 256 : 32, Form::dims == 2 ? 1 : 8, Form::dims == 2 ? 64 : 32};
  static constexpr int ring = Form::dims == 2 ? 0 : 1;  // rows around the block's own
  static constexpr int buffers = 4, ahead = buffers - 1;
  Form form;
  Geometry<T> g;

  struct State {
    std::int64_t from[shares];     // in a layer
    std::int32_t staged[shares];   // 0: not needed
    std::int32_t written, centre;  // in a buffer
    T* out;
    T here, next;
  };

  static std::int32_t cells(const Geometry<T>& g) { return (g.sx + 2) * (g.sy + 2 * ring); }
  static std::size_t shared_bytes(const Geometry<T>& g) {
    return buffers * sizeof(T) * static_cast<std::size_t>(cells(g));
  }

  HALOSCOPE_FUNCTION void operator()(const Team& team) const {
    const std::int32_t threads = team.threads(), pitch = g.sx + 2, tile = pitch * (g.sy + 2 * ring);
    T* const tiles = team.shared<T>();
    PerThread<State> states;
    const auto first = g.cell(team.block(), 0);
    LayerWalk<T> coming(g, first.begin - 1);
    const auto stage = [&](int thread, std::int32_t l) {
      const State& s = states[thread];
      HALOSCOPE_UNROLL()
      for (int k = 0; k < shares; ++k)
        if (s.staged[k] && l <= first.end)
          copy_to_shared(tiles + (l & (buffers - 1)) * tile + thread + k * threads, coming.at + s.from[k]);
      end_copies();
    };
    team.each([&](int thread) {
      State& s = states[thread];
      const auto c = g.cell(team.block(), thread);
      HALOSCOPE_UNROLL()
      for (int k = 0; k < shares; ++k) {
        const std::int32_t n = thread + k * threads, ty = n / pitch;
        const std::int32_t x = first.x - 1 + n - ty * pitch, y = first.y - ring + ty;
        s.staged[k] = n < tile && x <= g.x1 && y < g.y1 + ring;
        s.from[k] = g.place(x, y);
      }
      s.written = g.written(c);
      s.centre = (c.y - first.y + ring) * pitch + c.x - first.x + 1;
      s.out = g.out + c.x + c.y * g.row + (c.begin - 2) * g.layer;
      s.here = s.next = T{};
    });
    for (int k = 0; k < ahead; ++k, coming.go_on(g)) team.each([&](int thread) { stage(thread, first.begin - 1 + k); });
    for (std::int32_t l = first.begin - 1; l <= first.end; ++l, coming.go_on(g)) {
      team.each([](int) { await_copies<ahead - 1>(); });
      team.sync();  // all have the layer, and no thread reads the buffer any more that the next copies go to
      team.each([&](int thread) {
        State& s = states[thread];
        stage(thread, l + ahead);
        Neighbours<Form> around;
        around.read(SharedLayer<T>{tiles + (l & (buffers - 1)) * tile + s.centre, pitch});
        const T done = form.template layer<1>(around, s.here);
        s.here = form.template layer<0>(around, s.next);
        s.next = form.template layer<-1>(around, T{});
        if (s.written && l > first.begin) *s.out = done;
        s.out += g.layer;
      });
    }
  }
};

/// `Levels` time steps in one pass through the layers, for stencils that reach only straight up and down: step s + 1 of
/// a layer is finished as soon as step s of the next layer is available, all in registers; neighbours within the layer
/// come from shared memory. Blocks overlap by `Levels` cells at each side, which both compute.
template <class Form, int Levels>
struct FusedSweep {
  using T = typename Form::Real;
  static constexpr BlockShape usual{Form::dims == 2 ? 256 : 32, Form::dims == 2 ? 1 : 16, Form::dims == 2 ? 512 : 128};
  static constexpr int ring = Form::dims == 2 ? 0 : 1;
  Form form;
  Geometry<T> g;

  static constexpr int far_ahead = 8;  // layers to the cache

  struct State {
    std::int64_t from;             // the thread's cell in a layer
    T* out;                        // ... in the layer whose last step is now finished
    std::int32_t there, inside;    // it is read; it is written
    std::int32_t centre;           // in a buffer
    T ahead;                       // of the next layer, read during the work on this one
    T value[Levels];               // step s of the layer that step s has come to
    T here[Levels], next[Levels];  // sums of step s + 1: continued, begun
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
    LayerWalk<T> coming(g, begin), far(g, begin);
    for (int k = 1; k < far_ahead; ++k) far.go_on(g);
    team.each([&](int thread) {
      State& s = states[thread] = State{};
      const auto c = g.cell(team.block(), thread);
      const std::int32_t tx = c.x - first.x, ty = c.y - first.y;
      s.there = c.x < g.x1 + Levels && c.y < g.y1 + ring * Levels;
      s.from = g.place(c.x, c.y);
      s.out = g.out + c.x + c.y * g.row + (begin - Levels) * g.layer;
      s.inside =
          tx >= Levels && tx < g.sx - Levels && (ring == 0 || (ty >= Levels && ty < g.sy - Levels)) && g.written(c);
      s.centre = (ty + ring) * pitch + tx + 1;
      if (s.there) s.ahead = load(coming.at + s.from);
    });
    for (std::int32_t l = begin; l < end; ++l) {
      coming.go_on(g), far.go_on(g);
      T* const tiles = buffers + (l & 1) * Levels * cells;
      team.each([&](int thread) {
        State& s = states[thread];
        T value = s.ahead;
        if (s.there && l + 1 < end) s.ahead = load(coming.at + s.from);
        if (s.there && l + far_ahead < end) prefetch(far.at + s.from);
        HALOSCOPE_UNROLL()
        for (int step = 0; step < Levels; ++step) {
          s.value[step] = value;
          tiles[step * cells + s.centre] = value;
          value = form.template layer<1>([&](int, int) { return value; }, s.here[step]);
        }
        if (s.inside && l - Levels >= first.begin) *s.out = value;
        s.out += g.layer;
      });
      team.sync();
      team.each([&](int thread) {
        State& s = states[thread];
        HALOSCOPE_UNROLL()
        for (int step = 0; step < Levels; ++step) {
          const SharedLayer<T> tile{tiles + step * cells + s.centre, pitch};
          const auto at = [&](int i, int j) { return i == 0 && j == 0 ? s.value[step] : tile(i, j); };
          s.here[step] = form.template layer<0>(at, s.next[step]);
          s.next[step] = form.template layer<-1>([&](int, int) { return s.value[step]; }, T{});
        }
      });
    }
  }
};

}  // namespace haloscope::device::HALOSCOPE_BACKEND
