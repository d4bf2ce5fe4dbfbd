// Compares the structs of XLA that the library declares with the structs of jaxlib's headers, when it is compiled.
#include <cstddef>

#include "bindings/c/mpi/xla_ffi.hpp"
#include "xla/ffi/api/c_api.h"

namespace own = haloscope::c::xla;

#define SAME(ours, our_member, theirs, their_member)                                 \
  static_assert(offsetof(own::ours, our_member) == offsetof(theirs, their_member) && \
                sizeof(own::ours::our_member) == sizeof(theirs::their_member))

static_assert(own::major_version == XLA_FFI_API_MAJOR && own::minor_version <= XLA_FFI_API_MINOR);
static_assert(own::extension_of_metadata == static_cast<int>(XLA_FFI_Extension_Metadata));
static_assert(own::scalar_attribute == static_cast<int>(XLA_FFI_AttrType_SCALAR));
static_assert(own::array_attribute == static_cast<int>(XLA_FFI_AttrType_ARRAY));
static_assert(own::int64_type == static_cast<int>(XLA_FFI_DataType_S64));
static_assert(own::invalid_argument == static_cast<int>(XLA_FFI_Error_Code_INVALID_ARGUMENT));
static_assert(own::unimplemented == static_cast<int>(XLA_FFI_Error_Code_UNIMPLEMENTED));
static_assert(own::internal == static_cast<int>(XLA_FFI_Error_Code_INTERNAL));

SAME(Extension, type, XLA_FFI_Metadata_Extension, extension_base.type);
SAME(MetadataExtension, metadata, XLA_FFI_Metadata_Extension, metadata);
SAME(Metadata, version, XLA_FFI_Metadata, api_version);
SAME(Metadata, traits, XLA_FFI_Metadata, traits);
SAME(Version, major_version, XLA_FFI_Api_Version, major_version);
SAME(Version, minor_version, XLA_FFI_Api_Version, minor_version);
SAME(Buffer, type, XLA_FFI_Buffer, dtype);
SAME(Buffer, data, XLA_FFI_Buffer, data);
SAME(Buffer, rank, XLA_FFI_Buffer, rank);
SAME(Buffer, extents, XLA_FFI_Buffer, dims);
SAME(Scalar, type, XLA_FFI_Scalar, dtype);
SAME(Scalar, value, XLA_FFI_Scalar, value);
SAME(Array, type, XLA_FFI_Array, dtype);
SAME(Array, size, XLA_FFI_Array, size);
SAME(Array, data, XLA_FFI_Array, data);
SAME(Buffers, size, XLA_FFI_Args, size);
SAME(Buffers, buffers, XLA_FFI_Args, args);
SAME(Buffers, size, XLA_FFI_Rets, size);
SAME(Buffers, buffers, XLA_FFI_Rets, rets);
SAME(Attributes, size, XLA_FFI_Attrs, size);
SAME(Attributes, types, XLA_FFI_Attrs, types);
SAME(Attributes, names, XLA_FFI_Attrs, names);
SAME(Attributes, values, XLA_FFI_Attrs, attrs);
SAME(NewError, message, XLA_FFI_Error_Create_Args, message);
SAME(NewError, code, XLA_FFI_Error_Create_Args, errc);
SAME(Api, create_error, XLA_FFI_Api, XLA_FFI_Error_Create);
SAME(Call, extensions, XLA_FFI_CallFrame, extension_start);
SAME(Call, api, XLA_FFI_CallFrame, api);
SAME(Call, arguments, XLA_FFI_CallFrame, args);
SAME(Call, results, XLA_FFI_CallFrame, rets);
SAME(Call, attributes, XLA_FFI_CallFrame, attrs);
