// Every fused family, forward and backward, on operands and incoming gradients that are expanded, transposed, sliced and
// reversed: the results are those of contiguous copies.
#include <gtest/gtest.h>

#include <functional>

#include <volta/volta.h>

namespace volta::test {
namespace {

using Tensors = std::vector<Tensor>;

struct Layouted {
  std::string name;
  Tensor x;
};

// Views with the shape of x, of its values or of some of them repeated.
std::vector<Layouted> layouts(const Tensor& x) {
  std::vector<Layouted> all;
  const int64_t rank = x.dim();
  for (int64_t i = 0; i < rank; ++i) {
    if (x.size(i) < 2) continue;
    const std::string axis = std::to_string(i);
    all.push_back({"expanded along " + axis, x.narrow(i, 0, 1).expand(x.shape())});
    all.push_back({"reversed along " + axis, x.slice(i, {}, {}, -1)});
    all.push_back({"sliced along " + axis, cat({x, x, x}, i).slice(i, 1, 1 + 2 * x.size(i), 2)});
    if (i + 1 < rank) all.push_back({"transposed at " + axis, x.transpose(i, i + 1).contiguous().transpose(i, i + 1)});
  }
  if (rank > 2) all.push_back({"turned round", x.transpose(0, -1).contiguous().transpose(0, -1)});
  if (rank > 0)
    all.push_back({"one number", x.flatten().narrow(0, 0, 1).reshape(Shape::filled(int(rank), 1)).expand(x.shape())});
  return all;
}

using Function = std::function<Tensor(const Tensors&)>;

// The result and the gradients of all inputs for the incoming gradient g.
Tensors run(const Function& f, const Tensors& inputs, const Tensor& g) {
  Tensors leaves;
  for (const Tensor& x : inputs) leaves.push_back(is_floating(x.dtype()) ? x.detach().requires_grad_() : x);
  const Tensor y = f(leaves);
  Tensors wanted, all{y.detach()};
  for (const Tensor& x : leaves)
    if (x.requires_grad()) wanted.push_back(x);
  for (const Tensor& d : grad(y, wanted, {.grad_outputs = {g}, .allow_unused = true})) all.push_back(d);
  return all;
}

Tensor copied(const Tensor& x) { return x.contiguous().clone(); }
Tensors copied(const Tensors& xs) {
  Tensors all;
  for (const Tensor& x : xs) all.push_back(copied(x));
  return all;
}

void expect_equal(const std::string& what, const Tensors& got, const Tensors& wanted, double tolerance) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].defined(), wanted[i].defined()) << what << ", result " << i;
    if (!got[i].defined()) continue;
    ASSERT_EQ(got[i].shape(), wanted[i].shape()) << what << ", result " << i;
    if (got[i].numel() == 0) continue;
    const Tensor a = got[i].to(f64), b = wanted[i].to(f64);
    const double scale = 1 + max(abs(b)).item<double>(), apart = max(abs(a - b)).item<double>();
    EXPECT_LE(apart, tolerance * scale) << what << ", result " << i;
  }
}

// Each operand in each layout, the incoming gradient in each, and all of them at once.
void check(const std::string& name, const Tensors& inputs, const Function& f) {
  const Tensor y = f(inputs), g = rand(y.shape(), {y.dtype()}) - 0.5;
  const double tolerance = is_half(y.dtype()) ? 0.02 : y.dtype() == f64 ? 1e-12 : 2e-5;
  const auto compare = [&](const std::string& what, const Tensors& xs, const Tensor& d) {
    expect_equal(name + ", " + what, run(f, xs, d), run(f, copied(xs), copied(d)), tolerance);
  };
  std::vector<std::vector<Layouted>> of_inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    of_inputs.push_back(layouts(inputs[i]));
    for (const Layouted& l : of_inputs[i]) {
      Tensors xs = inputs;
      xs[i] = l.x;
      compare("input " + std::to_string(i) + " " + l.name, xs, g);
    }
  }
  const std::vector<Layouted> of_g = layouts(g);
  for (size_t k = 0; k < of_g.size(); ++k) {
    compare("gradient " + of_g[k].name, inputs, of_g[k].x);
    Tensors xs = inputs;
    for (size_t i = 0; i < xs.size(); ++i)
      if (!of_inputs[i].empty()) xs[i] = of_inputs[i][k % of_inputs[i].size()].x;
    compare("all at once, gradient " + of_g[k].name, xs, of_g[k].x);
  }
}

Tensor some(const Shape& shape, DType dtype = f32) { return rand(shape, {dtype}) * 2 - 1; }

class StridesFused : public testing::Test {
 protected:
  void SetUp() override { manual_seed(1); }
};

TEST_F(StridesFused, Attention) {
  const Function plain = [](const Tensors& x) { return scaled_dot_product_attention(x[0], x[1], x[2]); };
  const Function causal = [](const Tensors& x) {
    return scaled_dot_product_attention(x[0], x[1], x[2], {.is_causal = true});
  };
  for (const int64_t width : {5, 16, 32})
    for (const int64_t keys : {10, 12, 100}) {
      const std::string name = "attention " + std::to_string(width) + " x " + std::to_string(keys);
      check(name, {some({2, 10, width}), some({2, keys, width}), some({2, keys, 16})}, plain);
    }
  check("causal attention", {some({2, 2, 12, 16}), some({2, 2, 12, 16}), some({2, 2, 12, 16})}, causal);
  for (const DType t : {f64, bf16})
    check("attention", {some({2, 12, 16}, t), some({2, 10, 16}, t), some({2, 10, 16}, t)}, plain);
  const Function masked = [](const Tensors& x) {
    return scaled_dot_product_attention(x[0], x[1], x[2], {.attn_mask = x[3]});
  };
  check("attention with a mask", {some({2, 12, 16}), some({2, 8, 16}), some({2, 8, 16}), some({2, 12, 8})}, masked);
}

// As it was reported: the gradient that comes in is expanded over the queries.
TEST_F(StridesFused, AttentionOfAMean) {
  for (const int64_t keys : {10, 12}) {
    const Tensor q = some({2, 10, 16}), k = some({2, keys, 16}), v = some({2, keys, 16});
    const auto gradient = [&](DType t) {
      const Tensor leaf = v.to(t).detach().clone().requires_grad_();
      return grad(scaled_dot_product_attention(q.to(t), k.to(t), leaf).mean(1).square().sum(), leaf);
    };
    EXPECT_TRUE(allclose(gradient(f32).to(f64), gradient(f64), {.rtol = 1e-4, .atol = 1e-6}));
  }
}

constexpr ConvAlgorithm algorithms[] = {ConvAlgorithm::direct, ConvAlgorithm::im2col, ConvAlgorithm::implicit_gemm,
                                        ConvAlgorithm::winograd};

TEST_F(StridesFused, Convolution2d) {
  for (const ConvAlgorithm a : algorithms)
    for (const int64_t stride : {1, 2})
      for (const int64_t kernel : {1, 3}) {
        const Function f = [=](const Tensors& x) {
          return conv2d(x[0], x[1], x[2], {.stride = stride, .padding = kernel / 2, .algorithm = a});
        };
        check(std::string("conv2d ") + volta::name(a),
              {some({2, 16, 9, 8}), some({16, 16, kernel, kernel}), some({16})}, f);
      }
}

TEST_F(StridesFused, ConvolutionDilatedAndGrouped) {
  for (const ConvAlgorithm a : algorithms) {
    const Function dilated = [=](const Tensors& x) {
      return conv2d(x[0], x[1], {}, {.stride = 2, .padding = 2, .dilation = 2, .algorithm = a});
    };
    const Function grouped = [=](const Tensors& x) {
      return conv2d(x[0], x[1], {}, {.stride = 2, .padding = 1, .groups = 4, .algorithm = a});
    };
    check("dilated conv2d", {some({2, 8, 11, 8}), some({8, 8, 3, 3})}, dilated);
    check("grouped conv2d", {some({2, 16, 8, 8}), some({16, 4, 3, 3})}, grouped);
  }
  const Function depthwise = [](const Tensors& x) { return conv2d(x[0], x[1], {}, {.padding = 1, .groups = 16}); };
  check("depthwise conv2d", {some({1, 16, 8, 8}), some({16, 1, 3, 3})}, depthwise);
}

TEST_F(StridesFused, ConvolutionOtherAxes) {
  for (const ConvAlgorithm a : algorithms) {
    const Function one = [=](const Tensors& x) {
      return conv1d(x[0], x[1], {}, {.stride = 2, .padding = 1, .algorithm = a});
    };
    const Function three = [=](const Tensors& x) {
      return conv3d(x[0], x[1], {}, {.stride = 2, .padding = 1, .algorithm = a});
    };
    check("conv1d", {some({2, 16, 17}), some({16, 16, 3})}, one);
    check("conv3d", {some({1, 8, 5, 4, 6}), some({8, 8, 3, 2, 3})}, three);
  }
}

TEST_F(StridesFused, ConvolutionOfOtherDtypes) {
  const Function f = [](const Tensors& x) { return conv2d(x[0], x[1], {}, {.stride = 2, .padding = 1}); };
  for (const DType t : {f64, bf16}) check("conv2d", {some({2, 8, 8, 8}, t), some({8, 8, 3, 3}, t)}, f);
}

TEST_F(StridesFused, ConvolutionTransposed) {
  for (const ConvAlgorithm a : algorithms)
    for (const int64_t stride : {1, 2}) {
      const Function two = [=](const Tensors& x) {
        return conv_transpose2d(x[0], x[1], x[2], {.stride = stride, .padding = 1, .algorithm = a});
      };
      check("conv_transpose2d", {some({2, 16, 5, 8}), some({16, 8, 3, 3}), some({8})}, two);
    }
  const Function one = [](const Tensors& x) { return conv_transpose1d(x[0], x[1], {}, {.stride = 2, .groups = 2}); };
  const Function three = [](const Tensors& x) { return conv_transpose3d(x[0], x[1], {}, {.stride = 2}); };
  check("conv_transpose1d", {some({2, 16, 8}), some({16, 4, 3})}, one);
  check("conv_transpose3d", {some({1, 8, 3, 4, 4}), some({8, 8, 2, 2, 2})}, three);
}

// As it was reported: the gradient that comes in is expanded over the channels.
TEST_F(StridesFused, ConvolutionOfASumOverChannels) {
  const Tensor x = some({2, 32, 15, 15}), w = some({32, 32, 3, 3});
  const auto gradient = [&](DType t, ConvAlgorithm a) {
    const Tensor leaf = x.to(t).detach().clone().requires_grad_();
    const Tensor y = conv2d(leaf, w.to(t), {}, {.stride = 2, .padding = 1, .algorithm = a});
    return grad(y.sum(1).square().sum(), leaf);
  };
  const Tensor wanted = gradient(f64, ConvAlgorithm::direct);
  for (const ConvAlgorithm a : algorithms)
    EXPECT_TRUE(allclose(gradient(f32, a).to(f64), wanted, {.rtol = 1e-3, .atol = 1e-2})) << volta::name(a);
}

TEST_F(StridesFused, Pools) {
  const Function forms[] = {
      [](const Tensors& x) { return max_pool2d(x[0], 3, {.stride = 2, .padding = 1}); },
      [](const Tensors& x) { return max_pool2d_with_indices(x[0], 2).values; },
      [](const Tensors& x) { return avg_pool2d(x[0], 2); },
      [](const Tensors& x) { return avg_pool2d(x[0], 3, {.stride = 1, .padding = 1, .count_include_pad = false}); },
      [](const Tensors& x) { return adaptive_avg_pool2d(x[0], 3); },
      [](const Tensors& x) {
        return adaptive_max_pool2d(x[0], {3, 5});
      },
      [](const Tensors& x) { return lp_pool2d(x[0] + 2, 2, 2); },
  };
  for (const Function& f : forms)
    for (const int64_t width : {9, 16}) check("pool2d", {some({2, 3, 8, width})}, f);
  check("max_pool1d", {some({2, 3, 16})}, [](const Tensors& x) { return max_pool1d(x[0], 3, {.stride = 1}); });
  check("avg_pool3d", {some({2, 4, 6, 8})}, [](const Tensors& x) { return avg_pool3d(x[0], 2); });
}

TEST_F(StridesFused, Norms) {
  for (const int64_t n : {7, 16, 64}) {
    check("layer_norm", {some({3, 4, n}), some({n}), some({n})},
          [=](const Tensors& x) { return layer_norm(x[0], {n}, x[1], x[2]); });
    check("layer_norm of two axes", {some({3, 4, n}), some({4, n}), some({4, n})}, [=](const Tensors& x) {
      return layer_norm(x[0], {4, n}, x[1], x[2]);
    });
    check("rms_norm", {some({3, n}), some({n})}, [=](const Tensors& x) { return rms_norm(x[0], {n}, x[1], 1e-5); });
    check("group_norm", {some({3, 8, n}), some({8}), some({8})},
          [](const Tensors& x) { return group_norm(x[0], 4, x[1], x[2]); });
    check("batch_norm", {some({4, 8, n}), some({8}), some({8})},
          [](const Tensors& x) { return batch_norm(x[0], {}, {}, x[1], x[2], true); });
    check("instance_norm", {some({3, 8, n})}, [](const Tensors& x) { return instance_norm(x[0]); });
  }
  const Tensor mean = some({8}), var = rand({8}) + 0.5;
  check("batch_norm, statistics given", {some({4, 8, 16}), some({8}), some({8})},
        [=](const Tensors& x) { return batch_norm(x[0], mean, var, x[1], x[2]); });
  check("batch_norm of rows", {some({16, 32}), some({32}), some({32})},
        [](const Tensors& x) { return batch_norm(x[0], {}, {}, x[1], x[2], true); });
}

TEST_F(StridesFused, Rows) {
  for (const int64_t n : {5, 16, 33})
    for (const int64_t dim : {0, 1, 2}) {
      check("softmax", {some({3, n, 16})}, [=](const Tensors& x) { return softmax(x[0], dim); });
      check("log_softmax", {some({3, n, 16})}, [=](const Tensors& x) { return log_softmax(x[0], dim); });
      check("logsumexp", {some({3, n, 16})}, [=](const Tensors& x) { return logsumexp(x[0], dim); });
      check("cumsum", {some({3, n, 16})}, [=](const Tensors& x) { return cumsum(x[0], dim); });
      check("cumprod", {some({3, n, 16}, f64)}, [=](const Tensors& x) { return cumprod(x[0] + 2, dim); });
      check("logcumsumexp", {some({3, n, 16})}, [=](const Tensors& x) { return logcumsumexp(x[0], dim); });
      check("var", {some({3, n, 16})}, [=](const Tensors& x) { return var(x[0], dim); });
      check("norm", {some({3, n, 16})}, [=](const Tensors& x) { return norm(x[0], 2, dim); });
      check("sum", {some({3, n, 16})}, [=](const Tensors& x) { return sum(x[0], dim); });
      check("prod", {some({3, n, 16}, f64)}, [=](const Tensors& x) { return prod(x[0], dim); });
      check("amax", {some({3, n, 16})}, [=](const Tensors& x) { return amax(x[0], dim); });
      check("max", {some({3, n, 16})}, [=](const Tensors& x) { return max(x[0], dim).values; });
      check("cummax", {some({3, n, 16})}, [=](const Tensors& x) { return cummax(x[0], dim).values; });
      check("sort", {some({3, n, 16})}, [=](const Tensors& x) { return sort(x[0], dim).values; });
      check("topk", {some({3, n, 16})}, [=](const Tensors& x) { return topk(x[0], 2, dim).values; });
      check("median", {some({3, n, 16})}, [=](const Tensors& x) { return median(x[0], dim).values; });
    }
}

TEST_F(StridesFused, Losses) {
  for (const int64_t classes : {5, 16, 40}) {
    const Tensor labels = randint(0, classes, {8});
    check("cross_entropy", {some({8, classes})}, [=](const Tensors& x) { return cross_entropy(x[0], labels); });
    check("cross_entropy of images", {some({8, classes, 3})}, [=](const Tensors& x) {
      return cross_entropy(x[0], labels.unsqueeze(1).expand({8, 3}), {.label_smoothing = 0.1});
    });
    check("cross_entropy of probabilities", {some({8, classes}), rand({8, classes})},
          [](const Tensors& x) { return cross_entropy(x[0], x[1]); });
    check("labels in any layout", {some({8, classes}), labels},
          [](const Tensors& x) { return cross_entropy(x[0], x[1]); });
  }
  check("mse_loss", {some({8, 16}), some({8, 16})}, [](const Tensors& x) { return mse_loss(x[0], x[1]); });
  check("binary_cross_entropy_with_logits", {some({8, 16}), rand({8, 16})},
        [](const Tensors& x) { return binary_cross_entropy_with_logits(x[0], x[1]); });
}

TEST_F(StridesFused, Recurrence) {
  for (const int64_t size : {5, 16})
    for (const int64_t inputs : {4, 24}) {
      const nn::LSTM lstm(inputs, size, {.bidirectional = true});
      const nn::GRU gru(inputs, size);
      const nn::RNN rnn(inputs, size, {.batch_first = true});
      check("lstm", {some({7, 3, inputs})}, [&](const Tensors& x) {
        const auto y = lstm(x[0]);
        return cat({y.output.flatten(), y.h_n.flatten(), y.c_n.flatten()});
      });
      check("lstm, output", {some({7, 3, inputs})}, [&](const Tensors& x) { return lstm(x[0]).output; });
      check("gru, output", {some({7, 3, inputs})}, [&](const Tensors& x) { return gru(x[0]).output; });
      check("gru, state", {some({7, 3, inputs}), some({1, 3, size})},
            [&](const Tensors& x) { return gru(x[0], {.h_0 = x[1]}).h_n; });
      check("rnn", {some({7, 3, inputs})}, [&](const Tensors& x) { return rnn(x[0]).output; });
      check("rnn with lengths", {some({3, 7, inputs})}, [&](const Tensors& x) {
        return rnn(x[0], {.lengths = {7, 2, 5}}).output;
      });
    }
}

TEST_F(StridesFused, Products) {
  for (const int64_t n : {1, 5, 16, 48}) {
    check("matmul", {some({7, 16}), some({16, n})}, [](const Tensors& x) { return matmul(x[0], x[1]); });
    check("matmul of batches", {some({2, 7, 16}), some({16, n})}, [](const Tensors& x) { return matmul(x[0], x[1]); });
    check("bmm", {some({3, 7, 16}), some({3, 16, n})}, [](const Tensors& x) { return bmm(x[0], x[1]); });
    check("einsum", {some({3, 7, 16}), some({16, n, 3})}, [](const Tensors& x) {
      return einsum("bij,jkb->kib", {x[0], x[1]});
    });
    check("mv", {some({n, 16}), some({16})}, [](const Tensors& x) { return mv(x[0], x[1]); });
    for (const char* activation : {"none", "relu", "gelu", "silu"})
      check(std::string("linear and ") + activation, {some({7, 16}), some({n, 16}), some({n})},
            [=](const Tensors& x) { return linear(x[0], x[1], x[2], {.activation = activation}); });
    for (const DType t : {f64, bf16})
      check("matmul", {some({7, 16}, t), some({16, n}, t)}, [](const Tensors& x) { return matmul(x[0], x[1]); });
  }
  check("a long sum", {some({3, 4100}), some({4100, 16})}, [](const Tensors& x) { return matmul(x[0], x[1]); });
  check("large", {some({70, 130}), some({130, 96})}, [](const Tensors& x) { return matmul(x[0], x[1]); });
  check("large and fused", {some({70, 130}), some({96, 130}), some({96})},
        [](const Tensors& x) { return linear(x[0], x[1], x[2], {.activation = "gelu"}); });
}

TEST_F(StridesFused, Resampling) {
  for (const char* mode : {"nearest", "bilinear", "bicubic", "area"})
    for (const int64_t width : {5, 16})
      check(std::string("interpolate ") + mode, {some({2, 3, 6, width})}, [=](const Tensors& x) {
        return interpolate(x[0], {.size = {9, 8}, .mode = mode});
      });
  for (const char* mode : {"nearest", "bilinear", "bicubic"})
    check(std::string("grid_sample ") + mode, {some({2, 3, 6, 8}), some({2, 4, 16, 2}) * 0.9},
          [=](const Tensors& x) { return grid_sample(x[0], x[1], {.mode = mode}); });
  check("affine_grid", {some({2, 2, 3})}, [](const Tensors& x) { return affine_grid(x[0], {2, 3, 4, 8}); });
  check("im2col", {some({2, 3, 6, 8})}, [](const Tensors& x) { return im2col(x[0], 3, {.padding = 1, .stride = 2}); });
  check("col2im", {some({2, 12, 12})}, [](const Tensors& x) { return col2im(x[0], {4, 5}, 2); });
  check("pixel_shuffle", {some({2, 8, 3, 4})}, [](const Tensors& x) { return pixel_shuffle(x[0], 2); });
  for (const char* mode : {"constant", "reflect", "replicate", "circular"})
    check(std::string("pad ") + mode, {some({2, 3, 6, 8})}, [=](const Tensors& x) {
      return pad(x[0], {2, 1, 1, 3}, {.mode = mode});
    });
}

TEST_F(StridesFused, Indexing) {
  const Tensor ids = randint(0, 12, {6, 4}), places = randint(0, 6, {3, 16});
  for (const int64_t width : {5, 16}) {
    check("index_select", {some({12, width})}, [=](const Tensors& x) { return x[0].index_select(0, ids.flatten()); });
    check("indices in any layout", {some({12, width}), ids},
          [](const Tensors& x) { return x[0].index_select(0, x[1].flatten()); });
    check("index_add", {some({12, width}), some({24, width})},
          [=](const Tensors& x) { return x[0].index_add(0, ids.flatten(), x[1]); });
  }
  check("gather", {some({6, 16})}, [=](const Tensors& x) { return x[0].gather(0, places); });
  check("scatter_add", {some({6, 16}), some({3, 16})},
        [=](const Tensors& x) { return x[0].scatter_add(0, places, x[1]); });
  check("scatter", {some({6, 16}), some({3, 16})}, [=](const Tensors& x) {
    return x[0].scatter(0, arange(3).unsqueeze(1).expand({3, 16}), x[1]);
  });
  check("scatter_reduce", {some({6, 16}), some({3, 16})},
        [=](const Tensors& x) { return x[0].scatter_reduce(0, places, x[1], "amax"); });
  check("where", {some({6, 16}), some({6, 16})}, [](const Tensors& x) { return where(x[0] > 0, x[0] * x[1], x[1]); });
  check("masked_fill", {some({6, 16})}, [](const Tensors& x) { return x[0].masked_fill(x[0] > 0.5, 0); });
}

TEST_F(StridesFused, Embedding) {
  const Tensor ids = randint(0, 12, {6, 4}), offsets = tensor<int64_t>({0, 5, 5, 11});
  for (const DType t : {f32, f64, bf16})
    for (const int64_t width : {5, 16}) {
      check("embedding", {ids, some({12, width}, t)}, [](const Tensors& x) { return embedding(x[0], x[1], {}); });
      check("embedding of u8 with a padding row", {ids.to(u8), some({12, width}, t)},
            [](const Tensors& x) { return embedding(x[0], x[1], {.padding_idx = 3}); });
      for (const char* mode : {"sum", "mean", "max"}) {
        check(std::string("embedding_bag, ") + mode, {ids, some({12, width}, t)},
              [=](const Tensors& x) { return embedding_bag(x[0], x[1], {}, {.mode = mode, .padding_idx = 3}); });
        check(std::string("embedding_bag with offsets, ") + mode, {ids.flatten(), some({12, width}, t)},
              [=](const Tensors& x) { return embedding_bag(x[0], x[1], offsets, {.mode = mode}); });
      }
      check("weighted embedding_bag", {ids, some({12, width}, t), some({6, 4}, t)},
            [](const Tensors& x) { return embedding_bag(x[0], x[1], {}, {.mode = "sum"}, x[2]); });
    }
}

}  // namespace
}  // namespace volta::test
