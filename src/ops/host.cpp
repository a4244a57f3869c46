// Values of tensors on the host.
#include <cstring>

#include <volta/grad_mode.h>
#include <volta/tensor.h>

#include "backend/backend.h"
#include "core/check.h"
#include "core/watch.h"

namespace volta {

Scalar Tensor::item() const {
  require(checked("item").numel() == 1, ErrorKind::shape, "item", "needs exactly one element, the tensor has shape ",
          *this);
  reads(*this);
  alignas(8) char bytes[8];
  backend(device()).read(bytes, address(*this), size_of(dtype()));
  return visit(dtype(), [&]<class T>(TypeTag<T>) {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return Scalar(value);
  });
}

void Tensor::copy_to(void* out, DType as) const {
  const NoGrad off;
  reads(*this);
  const Tensor x = to(as).contiguous();
  if (x.numel() == 0) return;
  blamed_on("to_vector", [&] { backend(device()).download(out, address(x), x.nbytes()); });
}

}  // namespace volta
