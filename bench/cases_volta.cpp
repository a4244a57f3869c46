// The benchmark cases in Volta; cases_torch.cpp holds the same under the same names.
#include <volta/volta.h>

#include "sequence.h"
#include "steps.h"

namespace {

using bench::Case;
using namespace volta;

void add_overhead(std::vector<Case>& cases) {
  cases.push_back({"add/4", [] { return [x = randn({4}), y = randn({4})] { return x + y; }; }});
  cases.push_back({"mul_sum_backward/4", [] {
                     return [x = randn({4}, {.requires_grad = true}), y = randn({4})] { (x * y).sum().backward(); };
                   }});
}

void add_pointwise(std::vector<Case>& cases) {
  for (const std::int64_t n : bench::pointwise_sizes) {
    const std::string size = std::to_string(n);
    const double bytes = 4.0 * static_cast<double>(n);
    const auto one = bench::bytes(bytes), two = bench::bytes(2 * bytes), three = bench::bytes(3 * bytes);
    cases.push_back({"add/" + size, [n] { return [u = randn({n}), v = randn({n})] { return u + v; }; }, three});
    cases.push_back({"exp/" + size, [n] { return [u = randn({n})] { return exp(u); }; }, two});
    cases.push_back({"gelu/" + size, [n] { return [u = randn({n})] { return gelu(u); }; }, two});
    cases.push_back({"tanh/" + size, [n] { return [u = randn({n})] { return tanh(u); }; }, two});
    cases.push_back({"chain4/" + size,
                     [n] { return [u = randn({n}), v = randn({n})] { return relu(u * v + 1.0) * 0.5; }; }, three});
    cases.push_back({"sum/" + size, [n] { return [u = randn({n})] { return sum(u); }; }, one});
  }
}

void add_square(std::vector<Case>& cases) {
  constexpr std::int64_t n = 4096;
  const auto read = bench::bytes(4.0 * n * n), copied = bench::bytes(8.0 * n * n);
  const auto square = [] { return randn({n, n}); };
  cases.push_back({"bcast_row/4096", [=] { return [m = square(), row = randn({n})] { return m + row; }; }, copied});
  cases.push_back({"bcast_col/4096", [=] { return [m = square(), col = randn({n, 1})] { return m * col; }; }, copied});
  cases.push_back(
      {"transpose_copy/4096", [=] { return [m = square()] { return m.transpose(0, 1).contiguous(); }; }, copied});
  cases.push_back({"sum_rows/4096", [=] { return [m = square()] { return m.sum(1); }; }, read});
  cases.push_back({"sum_cols/4096", [=] { return [m = square()] { return m.sum(0); }; }, read});
  cases.push_back({"max_rows/4096", [=] { return [m = square()] { return m.max(1); }; }, read});
  cases.push_back({"cumsum/4096", [=] { return [m = square()] { return m.cumsum(1); }; }, copied});
  cases.push_back({"index_select/4096",
                   [=] { return [m = square(), i = randint(0, n, {n})] { return m.index_select(0, i); }; }, copied});
}

void add_rows_and_others(std::vector<Case>& cases) {
  cases.push_back({"softmax/4096x1024",
                   [] {
                     return [s = randn({4096, 1024})] { return softmax(s, -1); };
                   },
                   bench::bytes(8.0 * 4096 * 1024)});
  cases.push_back({"embedding/64x128x256", [] {
                     return [weight = randn({50000, 256}, {.requires_grad = true}),
                             ids = randint(0, 50000, {64, 128})] { return embedding(ids, weight); };
                   }});
  cases.push_back({"sort/1e6", [] { return [s = randn({1'000'000})] { return sort(s); }; }});
  cases.push_back({"randn/1e7", [] { return [] { return randn({10'000'000}); }; }});
}

void add_layers(std::vector<Case>& cases) {
  cases.push_back({"layernorm/4096x1024",
                   [] {
                     return [x = randn({4096, 1024}), layer = nn::LayerNorm(1024)] { return layer(x); };
                   },
                   bench::bytes(8.0 * 4096 * 1024)});
  cases.push_back({"cross_entropy_fb/512x10000", [] {
                     return [x = randn({512, 10000}, {.requires_grad = true}), target = randint(0, 10000, {512})] {
                       cross_entropy(x, target).backward();
                     };
                   }});
  cases.push_back({"maxpool/b8c64h112k3s2", [] {
                     return [x = randn({8, 64, 112, 112})] { return max_pool2d(x, 3, {.stride = 2, .padding = 1}); };
                   }});
  cases.push_back({"batchnorm_train/b8c64h112", [] {
                     return [x = randn({8, 64, 112, 112}), layer = nn::BatchNorm2d(64)] { return layer(x); };
                   }});
}

void add_matmul(std::vector<Case>& cases) {
  const auto flops = [](double m, double n, double k) { return bench::flops(2 * m * n * k); };
  for (const auto [m, n, k] : bench::matmul_sizes) {
    const std::string size = std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
    const auto rate = flops(static_cast<double>(m), static_cast<double>(n), static_cast<double>(k));
    cases.push_back({"matmul/" + size,
                     [m = m, n = n, k = k] {
                       return [p = randn({m, k}), q = randn({k, n})] { return matmul(p, q); };
                     },
                     rate});
  }
  cases.push_back({"matmul_nt/512",
                   [] {
                     return [p = randn({512, 512}), q = randn({512, 512})] { return matmul(p, q.transpose(0, 1)); };
                   },
                   flops(512, 512, 512)});
  cases.push_back({"bmm/64x64x64x64",
                   [] {
                     return [p = randn({64, 64, 64}), q = randn({64, 64, 64})] { return matmul(p, q); };
                   },
                   flops(64 * 64, 64, 64)});
  const auto typed = [](DType type) {
    return [=] {
      return [p = randn({1024, 1024}).to(type), q = randn({1024, 1024}).to(type)] { return matmul(p, q); };
    };
  };
  cases.push_back({"matmul_bf16/1024", typed(bf16), flops(1024, 1024, 1024)});
  cases.push_back({"matmul_f64/1024", typed(f64), flops(1024, 1024, 1024)});
  cases.push_back({"linear_relu/64x784x128",
                   [] {
                     return [x = randn({64, 784}), w = randn({128, 784}, {.requires_grad = true}),
                             b = randn({128}, {.requires_grad = true})] {
                       return linear(x, w, b, {.activation = "relu"});
                     };
                   },
                   flops(64, 128, 784)});
}

void add_convolution(std::vector<Case>& cases) {
  for (const bench::ConvSize& c : bench::conv_sizes) {
    const auto layer = [=] {
      return nn::Conv2d(c.channels, c.outputs, c.kernel,
                        {.stride = c.stride, .padding = c.kernel / 2, .groups = c.groups});
    };
    const auto image = [=] { return randn({c.batch, c.channels, c.side, c.side}, {.requires_grad = true}); };
    cases.push_back({std::string("conv_f/") + c.name,
                     [=] {
                       return [conv = layer(), x = image()] {
                         const NoGrad off;
                         conv(x);
                       };
                     },
                     bench::flops(c.flops())});
    cases.push_back({std::string("conv_fb/") + c.name,
                     [=] { return [conv = layer(), x = image()] { conv(x).sum().backward(); }; },
                     bench::flops(3 * c.flops())});
  }
}

std::vector<Case> all_cases() {
  manual_seed(0);
  std::vector<Case> cases;
  add_overhead(cases);
  add_pointwise(cases);
  add_square(cases);
  add_rows_and_others(cases);
  add_layers(cases);
  add_matmul(cases);
  add_convolution(cases);
  bench::add_steps(cases);
  bench::add_sequence(cases);
  return cases;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run(
      argc, argv, "Volta", [](int n) { set_num_threads(n); }, all_cases);
}
