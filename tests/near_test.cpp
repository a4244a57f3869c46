// Ops with a shorter formula for ordinary arguments: the value of an element does not depend on its neighbours.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <volta/volta.h>

namespace {

using namespace volta;

struct Function {
  const char* name;
  Tensor (*f)(const Tensor&);
  double range;
};

const Function functions[] = {
    {"exp", [](const Tensor& x) { return exp(x); }, 60},
    {"sigmoid", [](const Tensor& x) { return sigmoid(x); }, 60},
    {"silu", [](const Tensor& x) { return silu(x); }, 60},
    {"gelu", [](const Tensor& x) { return gelu(x); }, 5},
    {"sin", [](const Tensor& x) { return sin(x); }, 0x1p31},
    {"cos", [](const Tensor& x) { return cos(x); }, 0x1p31},
    {"tan", [](const Tensor& x) { return tan(x); }, 0x1p31},
    {"tanh", [](const Tensor& x) { return tanh(x); }, 10},
    {"gelu's derivative",
     [](const Tensor& x) {
       const Tensor leaf = x.clone().requires_grad_();
       return grad(gelu(leaf).sum(), leaf);
     },
     5},
};

template <class T> std::vector<T> samples(int64_t n, double range, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> unit(-1, 1), exponent(-40, 0);
  std::vector<T> x;
  for (int64_t i = 0; i < n; ++i) x.push_back(T(unit(random) * range * (i % 2 ? 1 : std::exp2(exponent(random)))));
  return x;
}

template <class T> std::vector<T> evaluate(const Function& f, const std::vector<T>& x) {
  return f.f(tensor(x)).template to_vector<T>();
}

template <class T> bool same(T a, T b) { return std::memcmp(&a, &b, sizeof a) == 0; }

template <class T> void far_neighbours_change_nothing(const Function& f) {
  constexpr int64_t n = 1000, step = 97;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<T> x = samples<T>(n, f.range, seed);
    const std::vector<T> y = evaluate(f, x);
    for (T far : {std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN(), T(-1e30)}) {
      std::vector<T> mixed = x;
      for (int64_t i = 0; i < n; i += step) mixed[size_t(i)] = far;
      const std::vector<T> z = evaluate(f, mixed);
      for (int64_t i = 0; i < n; ++i)
        ASSERT_TRUE(i % step == 0 || same(y[size_t(i)], z[size_t(i)])) << f.name << " at " << x[size_t(i)];
    }
  }
}

TEST(ValuesNear, far_neighbours_change_nothing) {
  for (const Function& f : functions) {
    far_neighbours_change_nothing<float>(f);
    far_neighbours_change_nothing<double>(f);
  }
}

TEST(ValuesNear, every_length_gives_the_same) {
  for (const Function& f : functions) {
    const std::vector<float> x = samples<float>(300, f.range, 5);
    const std::vector<float> y = evaluate(f, x);
    for (size_t n = 1; n < x.size(); n = n * 5 / 4 + 1) {
      const std::vector<float> z = evaluate(f, std::vector<float>(x.begin(), x.begin() + std::ptrdiff_t(n)));
      for (size_t i = 0; i < n; ++i) ASSERT_TRUE(same(y[i], z[i])) << f.name << " of " << n << " at " << x[i];
    }
  }
}

TEST(ValuesNear, in_place_gives_the_same) {
  Tensor x = tensor(samples<float>(1000, 3, 9));
  const std::vector<float> y = exp(x).to_vector<float>(), z = gelu(x).to_vector<float>();
  EXPECT_EQ(x.clone().exp_().to_vector<float>(), y);
  EXPECT_EQ(x.clone().gelu_().to_vector<float>(), z);
}

}  // namespace
