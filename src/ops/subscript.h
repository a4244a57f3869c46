// x[…] with a list of indices that is made at run time, as bindings of other languages have them.
#pragma once
#include <span>

#include <volta/tensor.h>

namespace volta {

Indexed subscript(const Tensor& x, std::span<const Index> indices);
// x[indices] = value, without reading what was there.
void assign_subscript(const Tensor& x, std::span<const Index> indices, const Operand& value);

}  // namespace volta
