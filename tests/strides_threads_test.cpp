// Layers large enough for threads to share what they make (patches, Winograd transforms, packed gradients, the steps of a
// recurrent layer), on operands and incoming gradients that are expanded, transposed, sliced and reversed: the results are
// those of contiguous copies on one thread, and the same bits on any number of threads.
#include <gtest/gtest.h>

#include <volta/volta.h>

namespace volta::test {
namespace {

using Tensors = std::vector<Tensor>;
constexpr int kLayouts = 7;
// Slower by tens of times, sanitizers are shown some of the layouts for each case, and all in the course of the cases.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kStep = 3;
const std::vector<int> kThreads{1, 16};
#else
constexpr int kStep = 1;
const std::vector<int> kThreads{1, 5, 16, 40};
#endif

Tensor laid_out(const Shape& shape, int layout, DType dtype) {
  const int rank = int(shape.size()), last = rank - 1;
  const auto with = [&](int axis, int64_t size) {
    Shape other = shape;
    other[axis] = size;
    return randn(other).to(dtype);
  };
  switch (layout) {
    case 1: {
      Shape turned = shape;
      std::swap(turned[0], turned[1]);
      std::swap(turned[last - 1], turned[last]);
      return randn(turned).to(dtype).transpose(last - 1, last).transpose(0, 1);
    }
    case 2: return with(1, 1).expand(shape);
    case 3: return with(last, 1).expand(shape);
    case 4: return with(last, 2 * shape[last]).slice(last, 0, 2 * shape[last], 2);
    case 5: return randn(shape).to(dtype).flip(0).slice(0, {}, {}, -1).slice(last, {}, {}, -1);
    case 6: return randn(Shape::filled(rank, 1)).to(dtype).expand(shape);
    default: return randn(shape).to(dtype);
  }
}

Tensors copied(const Tensors& xs) {
  Tensors all;
  for (const Tensor& x : xs) all.push_back(x.contiguous().clone());
  return all;
}

struct Threads {
  int before = get_num_threads();
  ~Threads() { set_num_threads(before); }
};

// `compute(leaves, g)` gives the result and the gradients.
template <typename Compute> void expect_same_everywhere(const std::string& what, const Tensors& operands,
                                                        const Tensor& g, double tolerance, const Compute& compute) {
  const Threads restore;
  const auto on = [&](int threads, const Tensors& xs, const Tensor& cotangent) {
    set_num_threads(threads);
    Tensors leaves;
    for (const Tensor& x : xs) leaves.push_back(x.detach().requires_grad_());
    return compute(leaves, cotangent);
  };
  const Tensors wanted = on(1, copied(operands), g.contiguous().clone()), one = on(1, operands, g);
  for (const int threads : kThreads) {
    const Tensors got = threads == 1 ? one : on(threads, operands, g);
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const double scale = wanted[i].to(f64).abs().max().item<double>();
      const double error = (got[i].to(f64) - wanted[i].to(f64)).abs().max().item<double>();
      EXPECT_LE(error, tolerance * scale) << what << ", result " << i << " on " << threads << " threads";
      EXPECT_TRUE(equal(got[i], one[i])) << what << ", result " << i << ": other bits on " << threads << " threads";
    }
  }
}

double tolerance_of(DType dtype) { return dtype == f64 ? 1e-13 : dtype == f32 ? 1e-5 : 1.0 / 64; }

TEST(StridesThreads, ConvolutionsThatShareWork) {
  struct Case {
    Shape x, weight;
    int64_t stride, padding, groups;
  };
  const Case cases[] = {{{3, 40, 12, 12}, {100, 20, 3, 3}, 2, 1, 2},  {{8, 260, 4, 4}, {250, 260, 3, 3}, 1, 1, 1},
                        {{3, 144, 10, 10}, {150, 72, 3, 3}, 1, 1, 2}, {{1, 128, 7, 7}, {256, 128, 1, 1}, 1, 0, 1},
                        {{2, 64, 15, 15}, {96, 64, 3, 3}, 1, 1, 1},   {{2, 64, 14, 14}, {128, 64, 3, 3}, 2, 1, 1}};
  const DType dtypes[] = {f32, f32, f64, bf16};
  int turn = 0;
  for (const Case& c : cases)
    for (int layout = turn % kStep; layout < kLayouts; layout += kStep, ++turn) {
      manual_seed(uint64_t(turn));
      const DType dtype = dtypes[turn % 4];
      const auto of = [&](const Tensor& x, const Tensor& weight) {
        return conv2d(x, weight, {}, {.stride = c.stride, .padding = c.padding, .groups = c.groups});
      };
      const Tensor x = laid_out(c.x, layout, dtype), weight = laid_out(c.weight, (layout + turn) % kLayouts, dtype);
      const Shape out = of(x, weight).shape();
      const Tensor g = laid_out(out, (layout + 2 * turn + 1) % kLayouts, dtype);
      expect_same_everywhere(
          "convolution of " + c.x.str() + ", layout " + std::to_string(layout) + ", " + std::string(name(dtype)),
          {x, weight}, g, tolerance_of(dtype), [&](const Tensors& leaves, const Tensor& cotangent) {
            const Tensor y = of(leaves[0], leaves[1]);
            const Tensors d = grad({y}, leaves, {.grad_outputs = cotangent});
            return Tensors{y.detach(), d[0], d[1]};
          });
    }
}

TEST(StridesThreads, RecurrentStepsThatAreShared) {
  for (const DType dtype : {f32, f64, bf16})
    for (int layout = int(dtype) % kStep; layout < kLayouts; layout += kStep) {
      manual_seed(uint64_t(layout));
      nn::LSTM lstm(40, 300);
      to(lstm, dtype);
      const Tensor x = laid_out({6, 5, 40}, layout, dtype),
                   g = laid_out({6, 5, 300}, (2 * layout + 1) % kLayouts, dtype);
      expect_same_everywhere("LSTM, layout " + std::to_string(layout) + ", " + std::string(name(dtype)), {x}, g,
                             tolerance_of(dtype), [&](const Tensors& leaves, const Tensor& cotangent) {
                               const Tensor y = lstm(leaves[0]).output;
                               Tensors wanted = parameters(lstm);
                               wanted.push_back(leaves[0]);
                               Tensors all = grad({y}, wanted, {.grad_outputs = cotangent});
                               all.push_back(y.detach());
                               return all;
                             });
    }
}

}  // namespace
}  // namespace volta::test
