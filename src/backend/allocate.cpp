// How new tensors get memory of their device.
#include "backend/allocate.h"

#include "backend/backend.h"
#include "core/watch.h"

namespace volta {
namespace {

thread_local constinit Backend* host_memory_of = nullptr;

template <class Form> Tensor made(IntrusivePtr<Storage> storage, const Form& form, DType dtype) {
  Tensor x(IntrusivePtr<TensorImpl>::adopt(new TensorImpl(std::move(storage), form, dtype)));
  if (memory_watch) [[unlikely]]
    memory_watch->made(*x.impl().storage);
  return x;
}

}  // namespace

Tensor allocate(const Shape& shape, DType dtype, Device device, const char* op) {
  const int64_t bytes = checked_numel(shape, op) * size_of(dtype);
  return made(backend(device).allocate(bytes, device, op), shape, dtype);
}

Tensor allocate_like(const Layout& dense, DType dtype, Device device, const char* op) {
  Layout layout = dense;
  layout.offset = 0;
  return made(backend(device).allocate(dense.numel() * size_of(dtype), device, op), layout, dtype);
}

Tensor allocate_as(const Tensor& x, DType dtype, Device device, const char* op) {
  const Layout& l = layout(x);
  if (l.is_contiguous() || !l.is_dense()) return allocate(l.shape, dtype, device, op);
  return allocate_like(l, dtype, device, op);
}

Tensor allocate_host(const Shape& shape, DType dtype, const char* op) {
  if (!host_memory_of) return allocate(shape, dtype, Device(), op);
  return made(host_memory_of->host_memory(checked_numel(shape, op) * size_of(dtype), op), shape, dtype);
}

HostMemoryFor::HostMemoryFor(Device device) : outer_(std::exchange(host_memory_of, &backend(device))) {}
HostMemoryFor::~HostMemoryFor() { host_memory_of = outer_; }

}  // namespace volta
