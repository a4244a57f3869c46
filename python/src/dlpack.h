// The DLPack protocol's structures, versions 0 and 1: https://dmlc.github.io/dlpack
#pragma once
#include <cstdint>

namespace volta::python::dlpack {

enum DeviceType : int32_t { cpu = 1, cuda = 2, cuda_host = 3, extension = 12 };
struct Device {
  int32_t type, id;
};
enum TypeCode : uint8_t { integer = 0, unsigned_integer = 1, floating = 2, bfloat = 4, truth = 6 };
struct Type {
  uint8_t code, bits;
  uint16_t lanes;
};
struct View {
  void* data;
  Device device;
  int32_t ndim;
  Type dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
struct Managed {
  View view;
  void* context;
  void (*deleter)(Managed*);
};
struct ManagedVersioned {
  struct Version {
    uint32_t major, minor;
  } version;
  void* context;
  void (*deleter)(ManagedVersioned*);
  uint64_t flags;
  View view;
};
inline constexpr uint64_t read_only = 1, is_copied = 2;
inline constexpr const char *name = "dltensor", *used_name = "used_dltensor";
inline constexpr const char *versioned_name = "dltensor_versioned", *used_versioned_name = "used_dltensor_versioned";

}  // namespace volta::python::dlpack
