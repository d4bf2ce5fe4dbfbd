// Files of fields for bindings, which find some errors in arguments themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "haloscope/field.hpp"

namespace haloscope {

/// A field, in each block of this rank, and the file that holds it.
struct FieldFile {
  std::vector<FieldRef> field;
  std::string path;
  std::string type{};                    ///< of its numbers there; "": by the field's quantity
  bool first_axis_fastest = false;       ///< the file lists its axes, equal in bytes, from x on
  std::optional<std::int64_t> offset{};  ///< of its points in a file of another format than .npy
  const Quantity& quantity() const { return field.front().quantity; }
};

enum class Transfer : std::uint8_t { read, write };

void transfer(MPI_Comm comm, const Layout& layout, Transfer kind, const std::function<FieldFile()>& make);
/// Reads or writes a field. Collective.
/// @param make  returns the file of this rank, or throws, on all ranks then.
template <class Make>
void transfer_field(MPI_Comm comm, const Layout& layout, Transfer kind, const Make& make) {
  transfer(comm, layout, kind, std::cref(make));  // allocates nothing, which could fail on one rank
}

}  // namespace haloscope
