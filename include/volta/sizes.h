// The sizes of a tensor as a structured binding.
#pragma once
#include <array>
#include <string>

#include <volta/tensor.h>

namespace volta {

// auto [b, t, d] = sizes<3>(x); an Error where x has not three axes.
template <int rank> std::array<int64_t, rank> sizes(const Tensor& x) {
  const Shape& shape = x.checked("sizes").shape();
  if (shape.size() != rank)
    throw Error(Error::Kind::shape, "sizes", "shape " + shape.str() + " has not " + std::to_string(rank) + " axes");
  std::array<int64_t, rank> list;
  for (int i = 0; i < rank; ++i) list[size_t(i)] = shape[i];
  return list;
}

}  // namespace volta
