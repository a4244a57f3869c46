// What of the data the loops of this folder go over by themselves: the one place that asks where a tensor lies.
#pragma once
#include <volta/tensor.h>

namespace volta::data {

// Whether the numbers lie in the host's memory and no gradient goes through them. Items and images do before they are
// moved, and one loop over them costs less than the ops that it stands for; those run for everything else.
inline bool is_on_host(const Tensor& x) { return x.device().is_cpu() && !x.requires_grad(); }
// Likewise, with no gaps between them: they can be copied as bytes.
inline bool is_host_bytes(const Tensor& x) { return is_on_host(x) && x.is_contiguous(); }

}  // namespace volta::data
