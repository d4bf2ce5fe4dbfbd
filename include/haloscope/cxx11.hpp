// Exchanges for programs in C++11 and later: owners of the handles of the C interface. They need its library alone.
// haloscope/exchange.h has the options, the errors and the costs of each call; its other functions take get().
#ifndef HALOSCOPE_CXX11_HPP
#define HALOSCOPE_CXX11_HPP

#include <haloscope/exchange.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace haloscope11 {

/// The failure of a call: its text has request, fault and remedy.
class Error : public std::runtime_error {
 public:
  /// @param failure  HS_FAILED, HS_USAGE or HS_UNAVAILABLE
  Error(hs_status failure, const std::string& text) : std::runtime_error(text), status_(failure) {}
  /// Returns HS_FAILED, HS_USAGE or HS_UNAVAILABLE.
  hs_status status() const noexcept { return status_; }

 private:
  hs_status status_;
};

/// Turns the status of a call into an exception; where the program is compiled without exceptions, a failure is printed
/// and ends all ranks. @throws Error for any status but HS_OK.
inline void check(hs_status status) {
  if (status == HS_OK) return;
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
  throw Error(status, hs_last_error());
#else
  const std::string text = hs_last_error();
  hs_end_job(text.c_str());
  std::fprintf(stderr, "haloscope: %s\n", text.c_str());  // outside of MPI, where no job can be ended
  std::abort();
#endif
}

/// The owner of a handle, which may move and not be copied.
template <class Handle, hs_status (*free_handle)(Handle*)>
class Owner {
 public:
  Owner() = default;
  Owner(Owner&& other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
  Owner& operator=(Owner&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owner() {
    if (handle_ != nullptr) free_handle(handle_);
  }
  /// Returns the handle, for functions of the C interface.
  Handle* get() const noexcept { return handle_; }

 protected:
  Handle* handle_ = nullptr;
};

/// A grid split over the ranks of a communicator. Collective; cost: hs_grid_create().
class Grid : public Owner<hs_grid, hs_grid_free> {
 public:
  /// @param options  of hs_grid_init(). @throws Error on all ranks, see hs_grid_create().
  Grid(MPI_Comm comm, const hs_grid_options& options) { check(hs_grid_create(comm, &options, &handle_)); }
  /// Splits even blocks. @param cells  global, of 1 to 3 dimensions. @param periodic  in all of them.
  Grid(MPI_Comm comm, std::initializer_list<std::int64_t> cells, bool periodic = false)
      : Grid(comm, of_cells(cells, periodic)) {}

  /// Returns this rank's cells, in global coordinates.
  hs_box owned() const {
    hs_box box;
    check(hs_grid_owned(handle_, &box));
    return box;
  }

 private:
  static hs_grid_options of_cells(std::initializer_list<std::int64_t> cells, bool periodic) {
    hs_grid_options options;
    hs_grid_init(&options);
    options.dims = static_cast<std::int32_t>(cells.size());
    for (std::size_t d = 0; d < cells.size() && d < 3; ++d) {
      options.cells[d] = cells.begin()[d];
      options.periodic[d] = periodic ? 1 : 0;
    }
    return options;
  }
};

/// The arrays of an exchange, which stay the caller's.
class Fields {
 public:
  /// Adds an array. @param first  the first owned point (not of the halo) of each slot; equally many for each array.
  /// @param stride  points between neighbours in x, y, z. @param halo  ghost layers on each side in these dimensions.
  /// @returns the field, whose other members (name, centring, low, high) may be set until the next array is added.
  template <class T>
  hs_field& add(std::initializer_list<T*> first, std::initializer_list<std::ptrdiff_t> stride, int halo = 1) {
    static_assert(std::is_trivially_copyable<T>::value && !std::is_const<T>::value,
                  "arrays are of objects that may be written to and copied as bytes; void has no size");
    slots_.emplace_back(first.begin(), first.end());
    dims_.push_back(stride.size());
    const std::string name = "array " + std::to_string(slots_.size());
    if (first.size() != slots_[0].size()) problem_ = name + " has other slots than array 1; pass as many addresses";
    hs_field field;
    hs_field_init(&field);
    field.element_bytes = static_cast<std::int32_t>(sizeof(T));
    field.type = std::is_integral<T>::value ? HS_TYPE_INTEGER : HS_TYPE_REAL;
    field.number_bytes = std::is_arithmetic<T>::value && !std::is_same<T, bool>::value ? 0 : -1;
    for (std::size_t d = 0; d < stride.size() && d < 3; ++d) {
      field.stride[d] = stride.begin()[d] * static_cast<std::int64_t>(sizeof(T));
      field.low[d] = field.high[d] = halo;
    }
    fields_.push_back(field);
    return fields_.back();
  }
  /// Adds an array of one slot.
  template <class T>
  hs_field& add(T* first, std::initializer_list<std::ptrdiff_t> stride, int halo = 1) {
    return add({first}, stride, halo);
  }
  /// Returns the fields, for functions of the C interface, until the next array is added.
  const hs_field* data() {
    for (std::size_t f = 0; f < fields_.size(); ++f) fields_[f].first = slots_[f].data();
    return fields_.data();
  }
  /// Returns the number of arrays.
  std::int32_t size() const noexcept { return static_cast<std::int32_t>(fields_.size()); }
  /// Returns the number of slots.
  std::int32_t slots() const noexcept { return slots_.empty() ? 1 : static_cast<std::int32_t>(slots_[0].size()); }
  /// Fails on all ranks where an array of one was wrong. Collective; cost: a reduction. @throws Error on all ranks.
  void agree(const Grid& grid) const {
    hs_grid_data data;
    hs_grid_data_init(&data);
    check(hs_grid_get(grid.get(), &data));
    std::string problem = problem_;
    for (std::size_t f = 0; f < dims_.size() && problem.empty(); ++f)
      if (dims_[f] != static_cast<std::size_t>(data.dims))
        problem = "array " + std::to_string(f + 1) + " has " + std::to_string(dims_[f]) + " strides on a grid of " +
                  std::to_string(data.dims) + " dimensions; pass one for each dimension";
    check(hs_grid_agree(grid.get(), problem.empty() ? HS_OK : HS_USAGE, problem.empty() ? nullptr : problem.c_str()));
  }

 private:
  std::string problem_;
  std::vector<std::size_t> dims_;  // strides of each array
  std::vector<hs_field> fields_;
  std::vector<std::vector<void*>> slots_;
};

/// A halo exchange of arrays, whose memory must stay in place. It may outlive its grid, not the grid's communicator.
/// Collective; cost: hs_exchange_create(). All ranks destroy their exchanges in the same order.
class Exchange : public Owner<hs_exchange, hs_exchange_free> {
 public:
  /// @param options  of hs_exchange_init(); `slots` is replaced by the fields' one. @throws Error on all ranks.
  Exchange(const Grid& grid, Fields fields, hs_exchange_options options) {
    fields.agree(grid);
    options.slots = fields.slots();
    count_ = static_cast<std::size_t>(fields.size());
    check(hs_exchange_create(grid.get(), fields.data(), fields.size(), &options, &handle_));
  }
  /// @param strategy  such as "ordered/p2p". @param corners  false: only the halos that a star needs.
  Exchange(const Grid& grid, Fields fields, const char* strategy = "auto", bool corners = true)
      : Exchange(grid, std::move(fields), of_strategy(strategy, corners)) {}

  Exchange(Exchange&&) noexcept = default;
  Exchange& operator=(Exchange&& other) noexcept {
    std::swap(count_, other.count_);
    Owner::operator=(std::move(other));
    return *this;
  }

  /// Fills the halos of a slot; a part: see hs_part_init().
  void run(int slot = 0) { check(hs_exchange_run(handle_, slot)); }
  void run(const hs_part& part, int slot = 0) { check(hs_exchange_run_part(handle_, &part, slot)); }
  /// Sends all messages; boundary points must not change before finish().
  void start(int slot = 0) { check(hs_exchange_start(handle_, slot)); }
  void start(const hs_part& part, int slot = 0) { check(hs_exchange_start_part(handle_, &part, slot)); }
  /// Advances messages without waiting. @returns true when everything has arrived.
  bool progress() {
    std::int32_t done = 0;
    check(hs_exchange_progress(handle_, &done));
    return done != 0;
  }
  /// Waits until the halos of the started slot are filled.
  void finish() { check(hs_exchange_finish(handle_)); }
  /// Adds the values in halos to the points that they are copies of, and clears the halos.
  void accumulate(int slot = 0) { check(hs_exchange_accumulate(handle_, slot)); }
  /// Copies points that several ranks hold from their owner to the other holders.
  void share(int slot = 0) { check(hs_exchange_share(handle_, nullptr, slot)); }
  /// Exchanges other arrays by the plans of this exchange. @param first  an address for each array.
  void run_at(std::initializer_list<void*> first, int slot = 0) {
    if (first.size() == count_) return check(hs_exchange_run_at(handle_, slot, first.begin()));
    const std::string text =
        std::to_string(first.size()) + " addresses for " + std::to_string(count_) + " arrays; pass one for each";
    check(hs_exchange_refuse(handle_, HS_CALL_RUN_AT, HS_USAGE, text.c_str()));
  }
  /// Returns one line with the strategy, this rank's messages and the choice of "auto".
  std::string report() const {
    const char* text = nullptr;
    check(hs_exchange_report(handle_, &text));
    return text;
  }

 private:
  std::size_t count_ = 0;

  static hs_exchange_options of_strategy(const char* strategy, bool corners) {
    hs_exchange_options options;
    hs_exchange_init(&options);
    options.strategy = strategy;
    options.corners = corners ? 1 : 0;
    return options;
  }
};

}  // namespace haloscope11

#endif
