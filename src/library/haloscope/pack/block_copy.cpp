#include "haloscope/pack/block_copy.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "haloscope/pack/overlap.hpp"

namespace haloscope {
namespace {

constexpr std::int64_t line = 64;                 // bytes of a cache line
constexpr std::int64_t longest_short_row = line;  // beyond it, the loop of memcpy is equally fast

std::int64_t lines_of(std::int64_t bytes) { return (bytes + line - 1) / line; }

bool plane_by_plane(const BlockCopy& first, const BlockCopy& second) {
  return first.planes == second.planes && !depend_on_earlier_planes(first, second);
}

bool row_by_row(const BlockCopy& first, const BlockCopy& second) {
  const auto plain = [](const BlockCopy& c) { return c.negated == 0 && c.store == Store::replace; };
  return first.rows == second.rows && first.row_bytes == second.row_bytes && plain(first) && plain(second) &&
         !depend_on_earlier_rows(first, second);
}

/// Merges contiguous rows into one row and contiguous planes into one plane; a dimension of extent 1 gets strides
/// that do not matter.
BlockCopy merged(BlockCopy c) {
  if (c.rows > 1 && c.from_row == c.row_bytes && c.to_row == c.row_bytes) {
    c.row_bytes *= c.rows;
    c.rows = 1;
  }
  if (c.rows == 1) c.from_row = c.to_row = c.row_bytes;
  if (c.rows == 1 && c.planes > 1 && c.from_plane == c.row_bytes && c.to_plane == c.row_bytes) {
    c.row_bytes *= c.planes;
    c.planes = 1;
  }
  if (c.planes == 1) c.from_plane = c.to_plane = 0;
  return c;
}

/// Prefetches the cache line needed `rows_ahead` rows from here: rows of a face are a line or more apart, so few
/// loads would be in flight otherwise. Measured at 128^3 doubles: own-neighbour x faces 20 % faster, unpacking 2
/// times, packing 1.2 times; no gain where the field fits the L2 cache. Addresses beyond the field do no harm.
constexpr std::int64_t rows_ahead = 64;
enum class Ahead { none, read, write };

template <Ahead ahead>
void fetch(const std::byte* at, std::int64_t row) {
  const auto* line = reinterpret_cast<const void*>(reinterpret_cast<std::intptr_t>(at) + rows_ahead * row);
  if constexpr (ahead == Ahead::read) __builtin_prefetch(line, 0);
  if constexpr (ahead == Ahead::write) __builtin_prefetch(line, 1);
}

/// Runs one plane of one copy, or of two copies row by row; Bytes > 0: short rows of `Bytes` bytes.
template <int Bytes, Ahead ahead>
void one(const BlockCopy& c, std::int64_t plane) {
  const std::byte* from = c.from + plane * c.from_plane;
  std::byte* to = c.to + plane * c.to_plane;
  const std::int64_t from_row = c.from_row, to_row = c.to_row;
  const std::size_t bytes = Bytes > 0 ? Bytes : c.row_bytes;
  for (std::int64_t r = c.rows; r > 0; --r, from += from_row, to += to_row) {
    ahead == Ahead::write ? fetch<ahead>(to, to_row) : fetch<ahead>(from, from_row);
    std::memcpy(to, from, bytes);
  }
}

/// Only the first copy's lines are fetched ahead: as the two ends of a field's rows, both copies share most of them.
template <int Bytes, Ahead ahead>
void two(const BlockCopy& c, const BlockCopy& d, std::int64_t plane) {
  const std::byte* from1 = c.from + plane * c.from_plane;
  const std::byte* from2 = d.from + plane * d.from_plane;
  std::byte* to1 = c.to + plane * c.to_plane;
  std::byte* to2 = d.to + plane * d.to_plane;
  const std::int64_t from_row1 = c.from_row, from_row2 = d.from_row, to_row1 = c.to_row, to_row2 = d.to_row;
  const std::size_t bytes = Bytes > 0 ? Bytes : c.row_bytes;
  for (std::int64_t r = c.rows; r > 0; --r) {
    ahead == Ahead::write ? fetch<ahead>(to1, to_row1) : fetch<ahead>(from1, from_row1);
    std::memcpy(to1, from1, bytes);
    std::memcpy(to2, from2, bytes);
    from1 += from_row1, to1 += to_row1, from2 += from_row2, to2 += to_row2;
  }
}

/// Copies one row per plane, as in y faces, and prefetches the next plane's row, both ends. Saves 10 % of an exchange
/// at 64^3 doubles.
void lone_row(const BlockCopy& c, std::int64_t plane) {
  constexpr std::int64_t longest = 4096;  // the hardware prefetches longer rows well
  const std::byte* from = c.from + plane * c.from_plane;
  std::byte* to = c.to + plane * c.to_plane;
  if (c.row_bytes < longest)
    for (std::int64_t b = 0; b < c.row_bytes; b += line) {
      __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::intptr_t>(from) + c.from_plane + b), 0);
      __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::intptr_t>(to) + c.to_plane + b), 1);
    }
  std::memcpy(to, from, static_cast<std::size_t>(c.row_bytes));
}

template <class T>
void negate_rows(const BlockCopy& c, std::int64_t plane) {
  for (std::int64_t r = 0; r < c.rows; ++r) {
    const auto* from = reinterpret_cast<const T*>(c.from + plane * c.from_plane + r * c.from_row);
    auto* to = reinterpret_cast<T*>(c.to + plane * c.to_plane + r * c.to_row);
    for (std::int64_t i = 0; i < c.row_bytes / static_cast<std::int64_t>(sizeof(T)); ++i) to[i] = -from[i];
  }
}

/// Numbers may be at any address, as in packed structs.
template <class T, bool negated>
void add_numbers(const BlockCopy& c, std::int64_t plane) {
  const std::byte* from_row = c.from + plane * c.from_plane;
  std::byte* to_row = c.to + plane * c.to_plane;
  for (std::int64_t r = 0; r < c.rows; ++r, from_row += c.from_row, to_row += c.to_row) {
    fetch<Ahead::write>(to_row, c.to_row);
    for (std::int64_t b = 0; b < c.row_bytes; b += static_cast<std::int64_t>(sizeof(T))) {
      T sum, summand;
      std::memcpy(&sum, to_row + b, sizeof(T));
      std::memcpy(&summand, from_row + b, sizeof(T));
      sum = static_cast<T>(negated ? sum - summand : sum + summand);
      std::memcpy(to_row + b, &sum, sizeof(T));
    }
  }
}

template <class T>
void add_rows(const BlockCopy& c, std::int64_t plane) {
  c.negated != 0 ? add_numbers<T, true>(c, plane) : add_numbers<T, false>(c, plane);
}

void add_plane(const BlockCopy& c, std::int64_t plane) {
  switch (c.summand) {
    case Summand::i8:
      return add_rows<std::uint8_t>(c, plane);  // integers wrap around, signed ones too
    case Summand::i16:
      return add_rows<std::uint16_t>(c, plane);
    case Summand::i32:
      return add_rows<std::uint32_t>(c, plane);
    case Summand::i64:
      return add_rows<std::uint64_t>(c, plane);
    case Summand::f32:
      return add_rows<float>(c, plane);
    case Summand::f64:
      return add_rows<double>(c, plane);
    case Summand::none:
      return;
  }
}

void clear_plane(const BlockCopy& c, std::int64_t plane) {
  for (std::int64_t r = 0; r < c.rows; ++r)
    std::memset(c.to + plane * c.to_plane + r * c.to_row, 0, static_cast<std::size_t>(c.row_bytes));
}

template <int Bytes, Ahead ahead>
void rows_of(const BlockCopy* copies, bool pair, std::int64_t plane) {
  if (pair)
    two<Bytes, ahead>(copies[0], copies[1], plane);
  else
    one<Bytes, ahead>(copies[0], plane);
}

template <int Bytes>
void short_rows(const BlockCopy* copies, bool pair, std::int64_t plane) {
  if (std::abs(copies->to_row) >= line)
    rows_of<Bytes, Ahead::write>(copies, pair, plane);
  else
    rows_of<Bytes, Ahead::read>(copies, pair, plane);
}

#if defined(__SSE2__)
/// Copies a row with stores that pass the caches, which need not load the lines first: data that exceed the caches take
/// about two thirds of the time. Needs end_streaming() before other threads or processes may read the row.
/// @param ahead  bytes to the line that is fetched for a later row; beyond the field it does no harm.
void stream_row(const std::byte* from, std::byte* to, std::int64_t bytes, std::int64_t ahead) {
  const auto head = std::min(bytes, static_cast<std::int64_t>(-reinterpret_cast<std::uintptr_t>(to) & (line - 1)));
  std::memcpy(to, from, static_cast<std::size_t>(head));
  std::int64_t done = head;
  for (; done + line <= bytes; done += line) {
    __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::intptr_t>(from) + done + ahead), 0);
    for (std::int64_t part = done; part < done + line; part += 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + part),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + part)));
  }
  std::memcpy(to + done, from + done, static_cast<std::size_t>(bytes - done));
}

/// Orders the stores before later ones, which announce that the data are there.
void end_streaming() { _mm_sfence(); }
constexpr bool may_stream = true;
#else
void stream_row(const std::byte* from, std::byte* to, std::int64_t bytes, std::int64_t) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}
void end_streaming() {}
constexpr bool may_stream = false;
#endif

/// Fetches the rows that follow within the next 5 kB: the hardware expects no row after a gap. Rows of 1 kB in fields
/// beyond the caches take half of the time, rows of 2 kB four fifths.
void stream_rows(const BlockCopy& c, std::int64_t plane) {
  constexpr std::int64_t lead = 5120;
  const std::int64_t ahead = c.row_bytes < lead ? lead / c.row_bytes * c.from_row : lead;
  for (std::int64_t r = 0; r < c.rows; ++r)
    stream_row(c.from + plane * c.from_plane + r * c.from_row, c.to + plane * c.to_plane + r * c.to_row, c.row_bytes,
               ahead);
}

void run_plane(const BlockCopy* copies, bool pair, std::int64_t plane) {
  if (copies->streams) return stream_rows(*copies, plane);
  if (copies->store == Store::add) return add_plane(*copies, plane);
  if (copies->store == Store::clear) return clear_plane(*copies, plane);
  if (copies->negated != 0)
    return copies->negated == 8 ? negate_rows<double>(*copies, plane) : negate_rows<float>(*copies, plane);
  if (copies->rows == 1 && !pair) return lone_row(*copies, plane);
  switch (copies->row_bytes) {
    case 4:
      return short_rows<4>(copies, pair, plane);
    case 8:
      return short_rows<8>(copies, pair, plane);
    case 12:
      return short_rows<12>(copies, pair, plane);
    case 16:
      return short_rows<16>(copies, pair, plane);
    case 24:
      return short_rows<24>(copies, pair, plane);
    case 32:
      return short_rows<32>(copies, pair, plane);
    case 64:
      return short_rows<64>(copies, pair, plane);
    default:
      return rows_of<0, Ahead::none>(copies, pair, plane);
  }
}

/// Returns a share of every plane: some of its rows or, of fewer rows than shares, some lines of every row. May be
/// empty.
BlockCopy part_of(BlockCopy c, Share share) {
  if (c.rows >= share.parts) {
    const std::int64_t begin = share_begin(c.rows, share);
    c.from += begin * c.from_row;
    c.to += begin * c.to_row;
    c.rows = share_end(c.rows, share) - begin;
    return c;
  }
  const std::int64_t lines = lines_of(c.row_bytes);
  const std::int64_t begin = share_begin(lines, share) * line;
  c.from += begin;
  c.to += begin;
  c.row_bytes = std::min(share_end(lines, share) * line, c.row_bytes) - begin;
  return c;
}

}  // namespace

CopyList::CopyList(std::vector<BlockCopy> copies) {
  for (const BlockCopy& c : copies) {
    if (c.row_bytes <= 0 || c.rows <= 0 || c.planes <= 0) continue;
    bytes_ += c.row_bytes * c.rows * c.planes;
    lines_ += lines_of(c.row_bytes) * c.rows * c.planes;
    copies_.push_back(merged(c));
  }
  choose_stores();
  join_sheets();
  find_stages();
}

/// Makes long rows of a list that exceeds the caches pass them.
void CopyList::choose_stores() {
  constexpr std::int64_t beyond_caches = std::int64_t{16} << 20, long_row = 8 * line;
  if (!may_stream || bytes_ < beyond_caches) return;
  for (BlockCopy& c : copies_) {
    c.streams = c.store == Store::replace && c.negated == 0 && c.row_bytes >= long_row;
    streams_ = streams_ || c.streams;
  }
}

void CopyList::join_sheets() {
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    const BlockCopy& c = copies_[i];
    bool joins = !sheets_.empty() && same_field(copies_[groups_[sheets_.back().begin].begin], c);
    for (std::size_t j = joins ? groups_[sheets_.back().begin].begin : i; joins && j < i; ++j)
      joins = plane_by_plane(copies_[j], c);
    if (!joins) sheets_.push_back({groups_.size(), groups_.size(), c.planes, true, true});
    Sheet& sheet = sheets_.back();
    const bool pairs = joins && sheet.end > sheet.begin && groups_.back().end - groups_.back().begin == 1 &&
                       c.row_bytes <= longest_short_row && row_by_row(copies_[i - 1], c);
    if (pairs)
      groups_.back() = {i - 1, i + 1, true};
    else
      groups_.push_back({i, i + 1, false});
    sheet.end = groups_.size();
  }
}

std::span<const BlockCopy> CopyList::copies_of(const Sheet& sheet) const {
  return {&copies_[groups_[sheet.begin].begin], groups_[sheet.end - 1].end - groups_[sheet.begin].begin};
}

/// Returns, for each sheet, the number of sheets up to the last earlier one that it depends on; 0 without any.
/// Cost: O(n log n) for n copies, and the pairs whose bytes interleave.
std::vector<std::size_t> CopyList::find_latest_dependencies() const {
  struct Access {
    Reach reach;
    std::size_t copy, sheet;
    bool writes;
  };
  std::vector<Access> accesses;
  for (std::size_t s = 0; s < sheets_.size(); ++s)
    for (const BlockCopy& c : copies_of(sheets_[s])) {
      const auto copy = static_cast<std::size_t>(&c - copies_.data());
      accesses.push_back({read_reach(c), copy, s, false});
      accesses.push_back({written_reach(c), copy, s, true});
    }
  std::ranges::sort(accesses, {}, [](const Access& a) { return a.reach.begin; });
  std::vector<std::size_t> latest(sheets_.size());
  std::vector<Access> open;  // accesses that reach to the present one
  for (const Access& one : accesses) {
    std::erase_if(open, [&](const Access& other) { return other.reach.end <= one.reach.begin; });
    for (const Access& other : open) {
      const auto [first, last] = std::minmax(one.sheet, other.sheet);
      if ((one.writes || other.writes) && latest[last] <= first && first < last &&
          depend(copies_[one.copy], copies_[other.copy]))
        latest[last] = first + 1;
    }
    open.push_back(one);
  }
  return latest;
}

void CopyList::find_stages() {
  const auto clash = [](std::span<const BlockCopy> copies, auto depend) {
    for (const BlockCopy& a : copies)
      for (const BlockCopy& b : copies)
        if (&a < &b && depend(a, b)) return true;
    return false;
  };
  const std::vector<std::size_t> latest = find_latest_dependencies();
  for (std::size_t s = 0; s < sheets_.size(); ++s) {
    sheets_[s].planes_apart = !clash(copies_of(sheets_[s]), depend_across_planes);
    sheets_[s].rows_apart = !clash(copies_of(sheets_[s]), depend);
    if (stages_.empty() || latest[s] > stages_.back().begin) stages_.push_back({s, s});
    stages_.back().end = s + 1;
  }
}

void CopyList::follow(std::span<const std::ptrdiff_t> moved) {
  for (BlockCopy& copy : copies_) {
    if (copy.from_field >= 0) copy.from += moved[static_cast<std::size_t>(copy.from_field)];
    if (copy.to_field >= 0) copy.to += moved[static_cast<std::size_t>(copy.to_field)];
  }
}

void CopyList::run() const {
  for (const Sheet& sheet : sheets_) run_planes(sheet, 0, sheet.planes);
  if (streams_) end_streaming();
}

void CopyList::run_planes(const Sheet& sheet, std::int64_t begin, std::int64_t end) const {
  for (std::int64_t plane = begin; plane < end; ++plane)
    for (std::size_t g = sheet.begin; g < sheet.end; ++g)
      run_plane(&copies_[groups_[g].begin], groups_[g].fuse_rows, plane);
}

void CopyList::run(Share share) const {
  if (share.parts == 1 || (stages() > 1 && share.part == 0)) return run();
  if (stages() == 1) run_stage(0, share);
}

void CopyList::run_stage(int stage, Share share) const {
  constexpr std::int64_t enough = 4;  // planes per share: with fewer, shares would be uneven
  for (std::size_t s = stages_[stage].begin; s < stages_[stage].end; ++s) {
    const Sheet& sheet = sheets_[s];
    if (sheet.planes_apart && (sheet.planes >= enough * share.parts || !sheet.rows_apart))
      run_planes(sheet, share_begin(sheet.planes, share), share_end(sheet.planes, share));
    else if (sheet.rows_apart)
      run_rows(sheet, share);
    else if (share.part == 0)
      run_planes(sheet, 0, sheet.planes);
  }
  if (streams_) end_streaming();
}

/// Runs one share of each copy of a sheet, copy by copy.
void CopyList::run_rows(const Sheet& sheet, Share share) const {
  for (std::size_t g = sheet.begin; g < sheet.end; ++g) {
    const bool pair = groups_[g].fuse_rows;
    BlockCopy parts[2];
    for (std::size_t i = 0; i <= pair; ++i) parts[i] = part_of(copies_[groups_[g].begin + i], share);
    if (parts[0].rows <= 0 || parts[0].row_bytes <= 0) continue;
    for (std::int64_t plane = 0; plane < sheet.planes; ++plane) run_plane(parts, pair, plane);
  }
}

}  // namespace haloscope
