// Every layer against PyTorch: outputs, gradients by inputs and parameters, and what the call leaves in the state.
#include <gtest/gtest.h>

#include <memory>

#include "oracle/training.h"
#include "samples.h"

namespace volta::test {
namespace {

using oracle::Case;
using oracle::Input;
using Tensors = std::vector<Tensor>;

// Epsilons of the largest element. The sums here have at most a few hundred terms, the deepest layer is a chain of five
// of them.
constexpr double allowed = 64;

const oracle::Oracle& answers() {
  static const oracle::Oracle oracle = oracle::read(std::string(VOLTA_TEST_DATA) + "/layers");
  return oracle;
}

// A layer, and how it is called.
struct Made {
  std::function<void(const StateDict&, DType, const Device&)> load;
  std::function<Tensors(const Tensors&)> call;
  std::function<StateDict()> state;
  std::function<std::vector<std::pair<std::string, Tensor>>()> parameters;
};
using Make = std::function<Made()>;

// make([] { return nn::Linear(5, 4); }), with another call for a layer of several inputs or outputs.
template <class F, class C> Make make(F construct, C call) {
  return [=] {
    using L = decltype(construct());
    auto layer = std::make_shared<L>(construct());
    return Made{[layer](const StateDict& state, DType dtype, const Device& device) {
                  to(*layer, dtype);
                  to(*layer, device);
                  load_state_dict(*layer, state);
                },
                [layer, call](const Tensors& x) { return call(*layer, x); }, [layer] { return state_dict(*layer); },
                [layer] { return named_parameters(*layer); }};
  };
}
template <class F> Make make(F construct) {
  return make(construct, [](const auto& layer, const Tensors& x) { return Tensors{layer(x[0])}; });
}
template <class L> L evaluated(L layer) {
  eval(layer);
  return layer;
}

using Table = std::map<std::string, Make>;
// clang-format off
Table simple() {
  return {
      {"Linear/plain", make([] { return nn::Linear(5, 4); })},
      {"Linear/no_bias", make([] { return nn::Linear(5, 4, {.bias = false}); })},
      {"Bilinear/plain", make([] { return nn::Bilinear(5, 4, 3); }, [](auto& l, auto& x) { return Tensors{l(x[0], x[1])}; })},
      {"Flatten/plain", make([] { return nn::Flatten(); })},
      {"Unflatten/plain", make([] { return nn::Unflatten(1, {2, 3}); })},
      {"ReLU/plain", make([] { return nn::ReLU(); })},
      {"ReLU6/plain", make([] { return nn::ReLU6(); })},
      {"LeakyReLU/plain", make([] { return nn::LeakyReLU(); })},
      {"ELU/plain", make([] { return nn::ELU(); })},
      {"SELU/plain", make([] { return nn::SELU(); })},
      {"CELU/plain", make([] { return nn::CELU(); })},
      {"GELU/plain", make([] { return nn::GELU(); })},
      {"GELU/tanh", make([] { return nn::GELU("tanh"); })},
      {"Sigmoid/plain", make([] { return nn::Sigmoid(); })},
      {"SiLU/plain", make([] { return nn::SiLU(); })},
      {"Mish/plain", make([] { return nn::Mish(); })},
      {"Tanh/plain", make([] { return nn::Tanh(); })},
      {"Softplus/plain", make([] { return nn::Softplus(); })},
      {"Softsign/plain", make([] { return nn::Softsign(); })},
      {"Hardtanh/plain", make([] { return nn::Hardtanh(); })},
      {"Hardsigmoid/plain", make([] { return nn::Hardsigmoid(); })},
      {"Hardswish/plain", make([] { return nn::Hardswish(); })},
      {"LogSigmoid/plain", make([] { return nn::LogSigmoid(); })},
      {"Tanhshrink/plain", make([] { return nn::Tanhshrink(); })},
      {"Softshrink/plain", make([] { return nn::Softshrink(); })},
      {"Hardshrink/plain", make([] { return nn::Hardshrink(); })},
      {"PReLU/plain", make([] { return nn::PReLU(); })},
      {"PReLU/channels", make([] { return nn::PReLU(3); })},
      {"Identity/plain", make([] { return nn::Identity(); })},
      {"Threshold/plain", make([] { return nn::Threshold(0.1, 20); })},
      {"Softmax/plain", make([] { return nn::Softmax(1); })},
      {"LogSoftmax/plain", make([] { return nn::LogSoftmax(0); })},
      {"Softmin/plain", make([] { return nn::Softmin(1); })},
      {"Softmax2d/plain", make([] { return nn::Softmax2d(); })},
      {"GLU/plain", make([] { return nn::GLU(); })},
      {"ReflectionPad2d/plain", make([] { return nn::ReflectionPad2d({1, 2, 3, 0}); })},
      {"ReplicationPad2d/plain", make([] { return nn::ReplicationPad2d({1, 2, 3, 4}); })},
      {"CircularPad2d/plain", make([] { return nn::CircularPad2d({1, 2, 0, 3}); })},
      {"ZeroPad2d/plain", make([] { return nn::ZeroPad2d({1, 0, 2, 3}); })},
      {"ConstantPad1d/plain", make([] { return nn::ConstantPad1d({2, 1}, 0.5); })},
      {"ReflectionPad3d/plain", make([] { return nn::ReflectionPad3d(1); })},
      {"PixelShuffle/plain", make([] { return nn::PixelShuffle(2); })},
      {"ChannelShuffle/plain", make([] { return nn::ChannelShuffle(2); })},
      {"PixelUnshuffle/plain", make([] { return nn::PixelUnshuffle(2); })},
      {"Embedding/plain", make([] { return nn::Embedding(7, 4); })},
      {"Embedding/padding", make([] { return nn::Embedding(7, 4, {.padding_idx = 2}); })},
      {"EmbeddingBag/sum", make([] { return nn::EmbeddingBag(7, 4, {.mode = "sum"}); }, [](auto& l, auto& x) { return Tensors{l(x[0], x[1])}; })},
      {"EmbeddingBag/mean", make([] { return nn::EmbeddingBag(7, 4); }, [](auto& l, auto& x) { return Tensors{l(x[0], x[1])}; })},
      {"EmbeddingBag/max", make([] { return nn::EmbeddingBag(7, 4, {.mode = "max"}); }, [](auto& l, auto& x) { return Tensors{l(x[0], x[1])}; })},
  };
}

Table norms() {
  return {
      {"BatchNorm1d/plain", make([] { return nn::BatchNorm1d(4); })},
      {"BatchNorm1d/sequence", make([] { return nn::BatchNorm1d(4); })},
      {"BatchNorm2d/plain", make([] { return nn::BatchNorm2d(3); })},
      {"BatchNorm2d/average", make([] { return nn::BatchNorm2d(3, {.momentum = {}}); })},
      {"BatchNorm2d/no_affine", make([] { return nn::BatchNorm2d(3, {.affine = false}); })},
      {"BatchNorm2d/no_statistics", make([] { return nn::BatchNorm2d(3, {.track_running_stats = false}); })},
      {"BatchNorm2d/eval", make([] { return evaluated(nn::BatchNorm2d(3)); })},
      {"BatchNorm3d/plain", make([] { return nn::BatchNorm3d(2); })},
      {"LayerNorm/plain", make([] { return nn::LayerNorm(6); })},
      {"LayerNorm/two_axes", make([] { return nn::LayerNorm({3, 6}); })},
      {"LayerNorm/no_bias", make([] { return nn::LayerNorm(6, {.bias = false}); })},
      {"RMSNorm/plain", make([] { return nn::RMSNorm(6, {.eps = 1e-6}); })},
      {"GroupNorm/plain", make([] { return nn::GroupNorm(2, 4); })},
      {"InstanceNorm1d/plain", make([] { return nn::InstanceNorm1d(3); })},
      {"InstanceNorm2d/affine", make([] { return nn::InstanceNorm2d(3, {.affine = true, .track_running_stats = true}); })},
      {"LocalResponseNorm/plain", make([] { return nn::LocalResponseNorm(3, 0.5); })},
  };
}
Table convolutions() {
  return {
      {"Conv1d/plain", make([] { return nn::Conv1d(4, 3, 3); })},
      {"Conv1d/all", make([] { return nn::Conv1d(4, 6, 3, {.stride = 2, .padding = 2, .dilation = 2, .groups = 2}); })},
      {"Conv1d/same", make([] { return nn::Conv1d(4, 3, 4, {.padding = "same", .dilation = 2}); })},
      {"Conv2d/plain", make([] { return nn::Conv2d(4, 3, 3); })},
      {"Conv2d/unbatched", make([] { return nn::Conv2d(4, 3, 3); })},
      {"Conv2d/padded", make([] { return nn::Conv2d(4, 5, 3, {.padding = 1, .bias = false}); })},
      {"Conv2d/pointwise", make([] { return nn::Conv2d(4, 5, 1); })},
      {"Conv2d/strided", make([] { return nn::Conv2d(4, 5, {3, 2}, {.stride = {2, 3}, .padding = {1, 0}}); })},
      {"Conv2d/dilated", make([] { return nn::Conv2d(4, 5, 3, {.padding = 2, .dilation = 2}); })},
      {"Conv2d/groups", make([] { return nn::Conv2d(4, 6, 3, {.groups = 2}); })},
      {"Conv2d/depthwise", make([] { return nn::Conv2d(4, 8, 3, {.padding = 1, .groups = 4}); })},
      {"Conv2d/reflect", make([] { return nn::Conv2d(4, 2, 3, {.padding = {2, 1}, .padding_mode = "reflect"}); })},
      {"Conv2d/replicate", make([] { return nn::Conv2d(4, 2, 3, {.padding = {2, 1}, .padding_mode = "replicate"}); })},
      {"Conv2d/circular", make([] { return nn::Conv2d(4, 2, 3, {.padding = {2, 1}, .padding_mode = "circular"}); })},
      {"Conv3d/plain", make([] { return nn::Conv3d(2, 3, 2); })},
      {"Conv3d/all", make([] { return nn::Conv3d(2, 4, {2, 3, 2}, {.stride = {1, 2, 2}, .padding = {1, 1, 0}, .groups = 2}); })},
      {"ConvTranspose1d/plain", make([] { return nn::ConvTranspose1d(4, 3, 3); })},
      {"ConvTranspose1d/all", make([] { return nn::ConvTranspose1d(4, 6, 3, {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2, .dilation = 2}); })},
      {"ConvTranspose2d/plain", make([] { return nn::ConvTranspose2d(4, 3, 2, {.stride = 2}); })},
      {"ConvTranspose2d/all", make([] { return nn::ConvTranspose2d(4, 6, 3, {.stride = {2, 3}, .padding = {1, 0}, .output_padding = {1, 2}, .groups = 2, .bias = false}); })},
      {"ConvTranspose3d/plain", make([] { return nn::ConvTranspose3d(2, 3, 2, {.stride = 2}); })},
  };
}
// clang-format on

const Table& table() {
  static const Table all = [] {
    Table whole;
    for (const Table& part : {simple(), norms(), convolutions()}) whole.insert(part.begin(), part.end());
    return whole;
  }();
  return all;
}

Tensor stored(const oracle::Stored& s, const Device& device, int64_t at) {
  return tensor_from(answers().data.data() + at, s.dtype, s.shape, {.dtype = s.dtype}).to(device);
}

std::vector<std::string> list_of(const std::string& text) {
  std::vector<std::string> list;
  std::istringstream in(text == "-" ? "" : text);
  for (std::string word; std::getline(in, word, ',');) list.push_back(word);
  return list;
}

class LayersOracle : public testing::TestWithParam<std::string> {
 protected:
  // PyTorch's answer, computed in f64 where it has one.
  void expect(const Tensor& got, const oracle::Stored& like, int64_t given, int64_t exact, const std::string& what) {
    const Tensor want = stored(like, Device(), exact == oracle::nothing ? given : exact);
    EXPECT_EQ(oracle::difference(got.to(Device()), want, allowed), "") << what;
  }

  void check(const Case& c, const Device& device) {
    const size_t inputs = size_t(c.args.whole("inputs", 0));
    const auto state_names = list_of(c.args.text("state")), changed = list_of(c.args.text("changed"));
    Tensors x;
    StateDict state;
    for (size_t i = 0; i < c.operands.size(); ++i) {
      const Input& in = std::get<Input>(c.operands[i]);
      Tensor value = stored(in.data, device, in.data.at);
      if (i >= inputs) state.add(state_names[i - inputs], value);
      else x.push_back(in.grad == oracle::nothing ? value : value.requires_grad_());
    }
    const Made made = table().at(GetParam())();
    made.load(state, oracle::dtype_named(c.dtype), device);
    const Tensors y = made.call(x);
    ASSERT_EQ(y.size() + changed.size(), c.outputs.size());
    Tensors roots, cotangents;
    for (size_t i = 0; i < y.size(); ++i) {
      const oracle::Output& out = c.outputs[i];
      expect(y[i], out.data, out.data.at, out.exact, "output " + std::to_string(i));
      if (out.cotangent == oracle::nothing) continue;
      roots.push_back(y[i]);
      cotangents.push_back(stored(out.data, device, out.cotangent));
    }
    for (size_t i = 0; i < changed.size(); ++i) {
      const oracle::Output& out = c.outputs[y.size() + i];
      expect(made.state().at(changed[i]), out.data, out.data.at, out.exact, changed[i]);
    }
    check_gradients(c, made, x, state_names, roots, cotangents);
  }

  void check_gradients(const Case& c, const Made& made, const Tensors& x, const std::vector<std::string>& state_names,
                       const Tensors& roots, const Tensors& cotangents) {
    std::map<std::string, Tensor> learned;
    for (const auto& [name, p] : made.parameters()) learned[name] = p;
    Tensors by;
    std::vector<std::pair<std::string, const Input*>> wanted;
    for (size_t i = 0; i < c.operands.size(); ++i) {
      const Input& in = std::get<Input>(c.operands[i]);
      if (in.grad == oracle::nothing) continue;
      const std::string name = i < x.size() ? "input " + std::to_string(i) : state_names[i - x.size()];
      by.push_back(i < x.size() ? x[i] : learned.at(name));
      wanted.emplace_back(name, &in);
    }
    if (by.empty()) return;
    const Tensors gradients = grad(roots, by, {.grad_outputs = cotangents});
    for (size_t i = 0; i < by.size(); ++i)
      expect(gradients[i], wanted[i].second->data, wanted[i].second->grad, wanted[i].second->grad_exact,
             "gradient of " + wanted[i].first);
  }
};

TEST_P(LayersOracle, EqualsPyTorch) {
  for (const Case& c : answers().cases.at(GetParam()))
    for (const Device& device : devices()) {
      SCOPED_TRACE(c.dtype + " " + device.str());
      check(c, device);
    }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, cases] : answers().cases) all.push_back(name);
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, LayersOracle, testing::ValuesIn(names()), [](const auto& one) {
  std::string name = one.param;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
});

}  // namespace
}  // namespace volta::test
