// Structs of XLA's foreign function interface, version 0.3: the parts of its C structs that a handler of buffers reads.
// XLA appends members to them, and supports a version for at least a year. A test compares them with jaxlib's headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haloscope::c::xla {

constexpr int major_version = 0, minor_version = 3;
enum : int { extension_of_metadata = 1, scalar_attribute = 3, array_attribute = 1, int64_type = 5 };
enum : int { invalid_argument = 3, unimplemented = 12, internal = 13 };  // codes of errors

struct Extension {
  std::size_t struct_size;
  int type;
  Extension* next;
};
struct Version {
  std::size_t struct_size;
  Extension* extensions;
  int major_version, minor_version;
};
struct Metadata {
  std::size_t struct_size;
  Version version;
  std::uint32_t traits;
};
struct MetadataExtension {
  Extension base;
  Metadata* metadata;
};

struct Buffer {
  std::size_t struct_size;
  Extension* extensions;
  int type;
  void* data;
  std::int64_t rank;
  std::int64_t* extents;
};
struct Scalar {
  int type;
  void* value;
};
struct Array {
  int type;
  std::size_t size;
  void* data;
};

/// Arguments or results. All of ours are buffers; a token, which orders calls, is one without data.
struct Buffers {
  std::size_t struct_size;
  Extension* extensions;
  std::int64_t size;
  int* types;
  Buffer** buffers;
};
/// Sorted by name.
struct Attributes {
  std::size_t struct_size;
  Extension* extensions;
  std::int64_t size;
  int* types;
  void** names;
  void** values;
};

struct Error;
struct NewError {
  std::size_t struct_size;
  Extension* extensions;
  const char* message;
  int code;
};
struct Api {
  std::size_t struct_size;
  Extension* extensions;
  Version version;
  const void* inner;
  Error* (*create_error)(NewError*);
};

struct Call {
  std::size_t struct_size;
  Extension* extensions;
  const Api* api;
  void* context;
  int stage;
  Buffers arguments, results;
  Attributes attributes;
};

}  // namespace haloscope::c::xla
