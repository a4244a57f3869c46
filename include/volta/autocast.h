// Autocast: ops choose between a half dtype and f32 by themselves, while the guard lives.
#pragma once
#include <volta/dtype.h>

namespace volta {

struct AutocastOptions {
  bool enabled = true;
  bool cache_enabled = true;  // a parameter is cast once, until the outermost guard ends
};

// Products run in the half dtype, what needs range or precision in f32, the rest in the widest dtype it is given; the table
// is in docs/ops.md. Parameters stay f32 and so do their gradients. f64 is left alone. The guard holds for this thread:
//   Tensor loss;
//   { Autocast half(bf16); loss = cross_entropy(model(x), labels); }
//   loss.backward();
class [[nodiscard]] Autocast {
 public:
  [[nodiscard]] explicit Autocast(DType dtype, const AutocastOptions& options = {});
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool on_before_, cache_before_;
  DType dtype_before_;
};
bool is_autocast_enabled();
DType autocast_dtype();  // the half dtype, while is_autocast_enabled()

}  // namespace volta
