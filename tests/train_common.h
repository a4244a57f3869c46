// A small network and batches that it can learn, for tests of fit.
#pragma once
#include <utility>
#include <vector>

#include <volta/volta.h>

namespace volta::test {

using Pairs = std::vector<std::pair<Tensor, Tensor>>;

struct Net {
  nn::Linear in{4, 16};
  nn::BatchNorm1d norm{16};
  nn::Dropout drop{0.25};
  nn::Linear out{16, 3};
  Tensor operator()(const Tensor& x) const { return out(drop(norm(in(x)).relu())); }
};

// Three classes that a small network can tell.
inline Pairs batches(int64_t count, int64_t size, uint64_t seed) {
  Generator generator(seed);
  Pairs list;
  for (int64_t i = 0; i < count; ++i) {
    const Tensor y = randint(0, 3, {size}, {.generator = &generator});
    const Tensor x = randn({size, 4}, {.generator = &generator}) + one_hot(y, 4).to(f32) * 3;
    list.emplace_back(x, y);
  }
  return list;
}

inline Net seeded_net() {
  manual_seed(3);
  return {};
}

inline bool same(const Net& a, const Net& b) {
  const StateDict left = state_dict(a), right = state_dict(b);
  for (const auto& [name, value] : left)
    if (!equal(value, right.at(name))) return false;
  return true;
}

}  // namespace volta::test
