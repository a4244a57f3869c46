// Tensor's accessors, and how handles are made and given up.
#include "core/check.h"
#include "core/checked_arithmetic.h"
#include "core/room.h"
#include "core/watch.h"

namespace volta {

thread_local constinit MemoryWatch* memory_watch = nullptr;

void retain(TensorImpl* t) noexcept { t->refs.fetch_add(1, std::memory_order_relaxed); }
void release(TensorImpl* t) noexcept {
  if (drop_reference(t->refs)) delete t;
}

Tensor from_storage(IntrusivePtr<Storage> storage, const Layout& layout, DType dtype) {
  return Tensor(IntrusivePtr<TensorImpl>::adopt(new TensorImpl(std::move(storage), layout, dtype)));
}

Tensor alias(const Tensor& x, const Layout& layout) { return from_storage(x.impl().storage, layout, x.dtype()); }

void Tensor::refuse_undefined(const char* op) {
  throw_error(ErrorKind::argument, op, "the tensor is undefined (default-constructed or moved from)");
}

DType Tensor::dtype() const { return checked("dtype").impl_->dtype; }
Device Tensor::device() const { return checked("device").impl_->storage->device; }
const Shape& Tensor::shape() const& { return checked("shape").impl_->layout.shape; }
const Shape& Tensor::strides() const& { return checked("strides").impl_->layout.strides; }
namespace {

int axis_with_size(const Tensor& x, int64_t axis, const char* op) {
  require(x.checked(op).dim() > 0, ErrorKind::index, op, "axis ", axis, " of a tensor that has no axes");
  return axis_of(x, axis, op);
}

}  // namespace

int64_t Tensor::size(int64_t axis) const { return shape()[axis_with_size(*this, axis, "size")]; }
int64_t Tensor::stride(int64_t axis) const { return strides()[axis_with_size(*this, axis, "stride")]; }
int64_t Tensor::storage_offset() const { return checked("storage_offset").impl_->layout.offset; }
int64_t Tensor::dim() const { return shape().size(); }
int64_t Tensor::numel() const { return shape().numel(); }
int64_t Tensor::nbytes() const { return numel() * size_of(dtype()); }
bool Tensor::is_contiguous() const { return checked("is_contiguous").impl_->layout.is_contiguous(); }
bool Tensor::shares_storage(const Tensor& other) const {
  return checked("shares_storage").impl_->storage == other.checked("shares_storage").impl_->storage;
}
uint32_t Tensor::version() const { return checked("version").impl_->storage->version.load(); }
void* Tensor::raw_data() const {
  shows(checked("raw_data"));
  return address(*this);
}

void* Tensor::data(DType as) const {
  require(checked("data").dtype() == as, ErrorKind::dtype, "data", "asked for ", as, " of a tensor of ", dtype());
  shows(*this);
  return address(*this);
}

void Tensor::refuse_item(const Scalar& value, DType as) {
  throw_error(ErrorKind::argument, "item", value, " does not fit ", as);
}

// An expanded tensor may have more elements than there is memory.
size_t Tensor::count_for_host(size_t bytes_each) const {
  const int64_t n = checked("to_vector").numel();
  require((Checked(n) * bytes_each).within(0, memory::stats().limit), ErrorKind::memory, "to_vector", n,
          " elements of ", bytes_each, " bytes are more than the memory holds");
  require_from_system(n * int64_t(bytes_each), "to_vector");
  return size_t(n);
}

Tensor Tensor::detach() const {
  gives_view(checked("detach"));
  return alias(*this, impl_->layout);
}

Device common_device(const Tensor& a, const Tensor& b, const char* op) {
  const Device x = a.checked(op).device(), y = b.checked(op).device();
  require(x == y, ErrorKind::device, op, "the tensors are on ", x, " and ", y, "; move one with .to(…)");
  return x;
}

}  // namespace volta

// What a debugger shows of a tensor: tools/gdb/volta.py calls it, and so may you. Kept here, in a file every program links.
extern "C" const char* volta_debug_text(const volta::Tensor* x) noexcept {
  static std::string text;
  try {
    text = x->str();
  } catch (const std::exception& e) {
    text = e.what();
  }
  return text.c_str();
}
