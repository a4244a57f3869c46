// Times a few ops and whole training steps on a GPU and prints one JSON object per line: {"case", "seconds"} for the best
// repetition, of steps also how many copies between host and device each makes.
// usage: gpu_volta [memory|products|small|families|shapes|optimizers|steps] [PART OF A CASE'S NAME]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

#include <models/char_lstm.h>
#include <models/gpt.h>
#include <models/lenet.h>
#include <models/mlp.h>
#include <models/resnet.h>
#include <volta/volta.h>

namespace {

using volta::Tensor;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string_view part_of_name;  // only cases whose names hold it are run
bool is_wanted(const std::string& name) { return name.find(part_of_name) != std::string::npos; }

// Seconds per call: the best of several runs of `calls` calls each, with the device idle before and after.
void measure(const std::string& name, int calls, auto&& f) {
  if (!is_wanted(name)) return;
  for (int i = 0; i < 3; ++i) f();
  double best = 1e9;
  for (int repetition = 0; repetition < 7; ++repetition) {
    volta::cuda::synchronize();
    const double start = now();
    for (int i = 0; i < calls; ++i) f();
    volta::cuda::synchronize();
    best = std::min(best, (now() - start) / calls);
  }
  std::printf("{\"case\": \"%s\", \"seconds\": %.9g}\n", name.c_str(), best);
  std::fflush(stdout);
}

void memory_bound() {
  const volta::Options gpu{.device = "cuda"};
  const Tensor x = volta::randn({1 << 27}, gpu), y = volta::randn({1 << 27}, gpu);
  measure("copy", 20, [&] { x.clone(); });
  measure("add", 20, [&] { x + y; });
  measure("gelu", 20, [&] { x.gelu(); });
  measure("sum", 20, [&] { x.sum(); });
  const Tensor rows = x.reshape({1 << 15, 1 << 12});
  measure("sum_rows", 20, [&] { rows.sum(1); });
  measure("sum_columns", 20, [&] { rows.sum(0); });
  measure("softmax_rows", 20, [&] { rows.softmax(1); });
  measure("transpose_copy", 20, [&] { rows.t().contiguous(); });
  const Tensor halves = rows.to(volta::bf16);
  measure("transpose_copy_bf16", 20, [&] { halves.t().contiguous(); });
  const Tensor bias = volta::randn({1 << 12}, gpu);
  measure("add_bias", 20, [&] { rows + bias; });
}

void products() {
  const Tensor a = volta::randn({4096, 4096}, {.device = "cuda"}), b = volta::randn({4096, 4096}, {.device = "cuda"});
  measure("matmul_f32", 10, [&] { a.matmul(b); });
  volta::cuda::allow_tf32(true);
  measure("matmul_tf32", 20, [&] { a.matmul(b); });
  volta::cuda::allow_tf32(false);
  const Tensor half_a = a.to(volta::bf16), half_b = b.to(volta::bf16);
  measure("matmul_bf16", 50, [&] { half_a.matmul(half_b); });
  for (const volta::DType dtype : {volta::f32, volta::bf16}) {
    const auto draw = [&](const volta::Shape& shape) { return volta::randn(shape, {.device = "cuda"}).to(dtype); };
    const std::string type(volta::name(dtype));
    const Tensor x = draw({64, 512, 512}), y = draw({64, 512, 512});
    measure("bmm_" + type + "_64x512", 50, [&] { x.matmul(y); });
    measure("bmm_" + type + "_64x512_transposed", 50, [&] { x.matmul(y.mT()); });
    const Tensor rows = draw({8192, 4096}).slice(0, 0, {}, 2), w = draw({4096, 4096});
    measure("matmul_" + type + "_strided", 10, [&] { rows.matmul(w); });
  }
}

void small() {
  const volta::Options gpu{.device = "cuda"};
  const Tensor x = volta::randn({4}, gpu), y = volta::randn({4}, gpu);
  measure("small_add", 1000, [&] { x + y; });
  measure("small_sum", 1000, [&] { x.sum(); });
  measure("small_item", 200, [&] { x.sum().item<float>(); });
  const Tensor w = volta::randn({4}, {.device = "cuda", .requires_grad = true});
  measure("small_backward", 200, [&] { volta::grad((w * y).sum(), w); });
}

// The forward pass, and the gradients by all inputs from a gradient of the result's shape: two cases.
struct Names {
  std::string forward, backward;
  Names(const std::string& name) : Names(name + "_fwd", name + "_bwd") {}
  Names(const std::string& forth, const std::string& back) : forward(forth), backward(back) {}
};
void both_ways(const Names& name, int calls, const std::vector<Tensor>& inputs,
               const std::function<Tensor(const std::vector<Tensor>&)>& f) {
  if (!is_wanted(name.forward) && !is_wanted(name.backward)) return;
  {
    const volta::NoGrad off;
    measure(name.forward, calls, [&] { f(inputs); });
  }
  std::vector<Tensor> leaves;
  for (const Tensor& x : inputs) leaves.push_back(x.detach().requires_grad_());
  const Tensor y = f(leaves), g = y.detach() * 0.5;  // in the order of y, as PyTorch's randn_like is
  measure(name.backward, calls,
          [&] { (void)volta::grad(std::vector<Tensor>{y}, leaves, {.grad_outputs = {g}, .retain_graph = true}); });
}

Tensor channels_last(const Tensor& x) { return x.movedim(1, -1).contiguous().movedim(-1, 1); }

void families() {
  using volta::randn;
  const Tensor words = volta::randint(0, 50304, {8192}, {.device = "cuda"});
  for (const volta::DType dtype : {volta::f32, volta::bf16}) {
    const auto draw = [&](const volta::Shape& shape) { return randn(shape, {.device = "cuda"}).to(dtype); };
    const std::string type(volta::name(dtype));
    both_ways("layer_norm_" + type, 10, {draw({16384, 8192}), draw({8192}), draw({8192})},
              [](const auto& in) { return volta::layer_norm(in[0], {8192}, in[1], in[2]); });
    both_ways("batch_norm_" + type, 10, {draw({64, 256, 56, 56}), draw({256}), draw({256})},
              [](const auto& in) { return volta::batch_norm(in[0], {}, {}, in[1], in[2], true); });
    both_ways("max_pool_" + type, 10, {draw({128, 64, 112, 112})},
              [](const auto& in) { return volta::max_pool2d(in[0], 3, {.stride = 2, .padding = 1}); });
    both_ways("embedding_" + type + "_50304x768", 10, {draw({50304, 768})},
              [&](const auto& in) { return volta::embedding(words, in[0]); });
    both_ways("dropout_" + type + "_64M", 10, {draw({1 << 26})},
              [](const auto& in) { return volta::dropout(in[0], 0.1); });
    struct Conv {
      const char* name;
      int64_t batch, in, out, size, kernel, stride;
    };
    for (const Conv& c : {Conv{"seed_B32C64H128K3", 32, 64, 64, 128, 3, 1}, Conv{"stem", 32, 3, 64, 224, 7, 2},
                          Conv{"r50_3x3_56", 128, 64, 64, 56, 3, 1}, Conv{"r50_1x1_56", 128, 256, 64, 56, 1, 1}})
      both_ways("conv_" + type + "_" + c.name, 5,
                {draw({c.batch, c.in, c.size, c.size}), draw({c.out, c.in, c.kernel, c.kernel})}, [&](const auto& in) {
                  return volta::conv2d(in[0], in[1], {}, {.stride = c.stride, .padding = c.kernel / 2});
                });
  }
  const auto image = [&](const volta::Shape& shape) {
    return channels_last(randn(shape, {.device = "cuda"}).to(volta::bf16));
  };
  both_ways(std::string("conv_bf16_nhwc_seed_B32C64H128K3"), 5, {image({32, 64, 128, 128}), image({64, 64, 3, 3})},
            [](const auto& in) { return volta::conv2d(in[0], in[1], {}, {.padding = 1}); });
  for (const int64_t width : {64, 128})
    for (const int64_t time : {1024, 4096, 8192}) {
      const auto draw = [&] {
        return randn({16384 / time, 1024 / width, time, width}, {.device = "cuda"}).to(volta::bf16);
      };
      const std::string name = "attention_bf16_" + std::to_string(width) + "_T" + std::to_string(time);
      both_ways(name, 5, {draw(), draw(), draw()}, [](const auto& in) {
        return volta::scaled_dot_product_attention(in[0], in[1], in[2], {.is_causal = true});
      });
    }
  const Tensor logits = randn({8192, 50304}, {.device = "cuda"}).to(volta::bf16).detach().requires_grad_();
  const Tensor labels = volta::randint(0, 50304, {8192}, {.device = "cuda"});
  measure("cross_entropy_bf16_8192x50304", 5, [&] { (void)volta::grad(volta::cross_entropy(logits, labels), logits); });
}

// Products of several sizes, passes over memory in f32 and bf16, convolutions in three precisions, attention of heads of 64.
void shapes_of_products() {
  const auto draw = [](int64_t n, volta::DType dtype) { return volta::randn({n, n}, {.device = "cuda"}).to(dtype); };
  for (const int64_t n : {1024, 4096, 8192})
    for (const volta::DType dtype : {volta::bf16, volta::f16, volta::f32}) {
      const Tensor x = draw(n, dtype), y = draw(n, dtype);
      const std::string size = std::to_string(n);
      std::string product = "matmul_";
      product.append(volta::name(dtype)).append("_").append(size);
      measure(product, 10, [&] { x.matmul(y); });
      if (dtype != volta::f32) continue;
      volta::cuda::allow_tf32(true);
      measure("matmul_tf32_" + size, 10, [&] { x.matmul(y); });
      volta::cuda::allow_tf32(false);
    }
}

void shapes_of_memory() {
  const Tensor bytes = volta::zeros({1 << 30}, {.dtype = volta::u8, .device = "cuda"});
  measure("copy_1GiB", 10, [&] { bytes.clone(); });
  for (const volta::DType dtype : {volta::f32, volta::bf16}) {
    const auto draw = [&](const volta::Shape& shape) { return volta::randn(shape, {.device = "cuda"}).to(dtype); };
    const std::string type(volta::name(dtype)), all = type + "_128M", rows = type + "_16384x8192";
    const Tensor a = draw({1 << 27}), b = draw({1 << 27}), m = a.reshape({16384, 8192}), r = draw({8192});
    measure("add_" + all, 10, [&] { a + b; });
    measure("gelu_" + all, 10, [&] { a.gelu(); });
    measure("chain4_" + all, 10, [&] { (a * b + a).sigmoid() * b; });
    measure("sum_" + all, 10, [&] { a.sum(); });
    measure("sum0_" + rows, 10, [&] { m.sum(0); });
    measure("transpose_" + rows, 10, [&] { m.t().contiguous(); });
    measure("bcast_add_" + rows, 10, [&] { m + r; });
    measure("softmax_" + rows, 10, [&] { m.softmax(-1); });
  }
}

void shapes_of_convolutions() {
  struct Conv {
    const char* name;
    int64_t batch, in, out, size, kernel, stride;
  };
  const Conv all[] = {{"seed_B32C64H128K3", 32, 64, 64, 128, 3, 1}, {"stem", 32, 3, 64, 224, 7, 2},
                      {"r50_3x3_56", 128, 64, 64, 56, 3, 1},        {"r50_1x1_56", 128, 256, 64, 56, 1, 1},
                      {"r50_3x3_7", 128, 512, 512, 7, 3, 1},        {"cifar3_16", 64, 3, 16, 32, 3, 1}};
  for (const Conv& c : all)
    for (const std::string kind : {"f32", "tf32", "bf16cl"}) {
      const auto draw = [&](const volta::Shape& shape) {
        const Tensor x = volta::randn(shape, {.device = "cuda"});
        return kind == "bf16cl" ? channels_last(x.to(volta::bf16)) : x;
      };
      volta::cuda::allow_tf32(kind == "tf32");
      both_ways(Names("conv_fwd_" + kind + "_" + c.name, "conv_bwd_" + kind + "_" + c.name), 5,
                {draw({c.batch, c.in, c.size, c.size}), draw({c.out, c.in, c.kernel, c.kernel})}, [&](const auto& in) {
                  return volta::conv2d(in[0], in[1], {}, {.stride = c.stride, .padding = c.kernel / 2});
                });
      volta::cuda::allow_tf32(false);
    }
}

void shapes_of_attention() {
  for (const int64_t time : {128, 1024, 4096, 8192}) {
    const auto draw = [&] { return volta::randn({16384 / time, 16, time, 64}, {.device = "cuda"}).to(volta::bf16); };
    const std::string steps = std::to_string(time);
    both_ways(
        Names("sdpa_causal_fwd_bf16_T" + steps, "sdpa_causal_bwd_bf16_T" + steps), 5, {draw(), draw(), draw()},
        [](const auto& in) { return volta::scaled_dot_product_attention(in[0], in[1], in[2], {.is_causal = true}); });
  }
}

void shapes() {
  shapes_of_products();
  shapes_of_memory();
  shapes_of_convolutions();
  shapes_of_attention();
}

void optimizers() {
  std::vector<Tensor> parameters;
  for (int i = 0; i < 124; ++i) {
    parameters.push_back(volta::randn({1 << 20}, {.device = "cuda", .requires_grad = true}));
    (parameters.back() * 2).sum().backward();
  }
  volta::optim::AdamW adamw(parameters, {});
  measure("adamw_124M_f32", 10, [&] { adamw.step(); });
}

// In a sequence, every element has a target. Images may run as they do in earnest, channels last; products in bf16.
template <class Model> void step(const std::string& name, Model model, const Tensor& x, int calls, bool amp = false) {
  if (!is_wanted(name) && !is_wanted(name + "_replay")) return;
  volta::to(model, "cuda");
  volta::optim::Adam optimizer(volta::parameters(model), {});
  const bool sequence = !volta::is_floating(x.dtype());
  const Tensor input = amp && !sequence ? channels_last(x.to("cuda")) : x.to("cuda"),
               target = volta::randint(0, 10, {sequence ? x.numel() : x.size(0)}).to("cuda");
  const auto run = [&] {
    optimizer.zero_grad();
    Tensor loss;
    {
      const volta::Autocast half(volta::bf16, {.enabled = amp});
      const Tensor scores = model(input);
      loss = volta::cross_entropy(sequence ? scores.flatten(0, 1) : scores, target);
    }
    loss.backward();
    optimizer.step();
  };
  measure(name, calls, run);
  const auto before = volta::cuda::memory_stats();
  run();
  const auto after = volta::cuda::memory_stats();
  std::fprintf(stderr, "%s: %lld transfers and %lld reads in a step, %.1f GiB at most so far\n", name.c_str(),
               static_cast<long long>(after.transfers - before.transfers),
               static_cast<long long>(after.reads - before.reads), double(after.peak) / double(1 << 30));
  measure(name + "_replay", calls, volta::capture(run));
}

void steps() {
  step("step_mlp", volta::models::mlp({.widths = {784, 512, 256, 10}}), volta::randn({128, 784}), 100);
  step("step_lenet", volta::models::LeNet5{}, volta::randn({64, 1, 28, 28}), 20);
  step("step_mlp_784_128_10_b64", volta::models::mlp({.widths = {784, 128, 10}}), volta::randn({64, 784}), 100);
  step("step_charlstm_2x256_b64_T128",
       volta::models::CharLSTM{{.vocab = 96, .embedding = 128, .hidden = 256, .layers = 2}},
       volta::randint(0, 96, {64, 128}), 10);
  auto gpt = volta::models::gpt({.vocab = 50304, .dropout = 0});
  volta::to(gpt, volta::bf16);
  step("step_gpt2_bf16_b8_T1024", std::move(gpt), volta::randint(0, 50257, {8, 1024}), 5);
  step("step_gpt2_amp_b32_T1024", volta::models::gpt({.vocab = 50304, .dropout = 0}),
       volta::randint(0, 50257, {32, 1024}), 3, true);
  step("step_resnet50_b64", volta::models::resnet50({.classes = 1000}), volta::randn({64, 3, 224, 224}), 2);
  step("step_resnet50_amp_nhwc_b256", volta::models::resnet50({.classes = 1000}), volta::randn({256, 3, 224, 224}), 5,
       true);
}

}  // namespace

int main(int count, char** argument) {
  if (!volta::cuda::is_available()) {
    std::fprintf(stderr, "no GPU\n");
    return 1;
  }
  const std::pair<std::string_view, void (*)()> groups[] = {
      {"memory", memory_bound}, {"products", products},     {"small", small}, {"families", families},
      {"shapes", shapes},       {"optimizers", optimizers}, {"steps", steps}};
  const std::string_view first = count > 1 ? argument[1] : "", second = count > 2 ? argument[2] : "";
  const bool is_group =
      std::any_of(std::begin(groups), std::end(groups), [&](const auto& g) { return g.first == first; });
  part_of_name = is_group ? second : first;
  for (const auto& [name, run] : groups)
    if (!is_group || name == first) run();
}
