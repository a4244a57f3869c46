// Recurrent layers, attention and transformers against PyTorch's values and gradients (oracle/sequence.py).
#include <gtest/gtest.h>

#include <cmath>

#include "oracle/reader.h"

namespace volta {
namespace {

using oracle::Args;
using oracle::Case;
using Tensors = std::vector<Tensor>;

const oracle::Oracle& data() {
  static const oracle::Oracle all = oracle::read(std::string(VOLTA_TEST_DATA) + "/sequence");
  return all;
}
Tensor stored(const oracle::Stored& s) {
  return tensor_from(data().data.data() + s.at, s.dtype, s.shape, {.dtype = s.dtype});
}

std::vector<std::string> words(const Args& a, const std::string& key) {
  std::vector<std::string> list;
  std::istringstream in(a.has(key) ? a.text(key) : "");
  for (std::string word; std::getline(in, word, ',');) list.push_back(word);
  return list;
}

// A case on its way: its tensors, and the gradients and results that PyTorch gave.
struct Check {
  const Case& c;
  Tensors inputs, wanted, answers;

  explicit Check(const Case& given) : c(given) {
    const size_t parameters = words(c.args, "names").size();
    for (size_t i = 0; i + parameters < c.operands.size(); ++i) inputs.push_back(take(i));
  }
  Tensor take(size_t i) {
    const auto& in = std::get<oracle::Input>(c.operands[i]);
    Tensor t = stored(in.data);
    if (in.grad == oracle::nothing) return t;
    t.requires_grad_();
    expect_gradient(t, in);
    return t;
  }
  void expect_gradient(const Tensor& t, const oracle::Input& in) {
    wanted.push_back(t);
    answers.push_back(stored({in.data.dtype, in.data.shape, in.grad}));
  }
  // Gives the model the parameters of the case, by their names.
  template <class M> void load(M& model) {
    to(model, f64);
    eval(model);
    auto own = named_parameters(model);
    const std::vector<std::string> names = words(c.args, "names");
    ASSERT_EQ(own.size(), names.size());
    for (size_t i = 0; i < names.size(); ++i) {
      EXPECT_EQ(own[i].first, names[i]);
      const auto& in = std::get<oracle::Input>(c.operands[inputs.size() + i]);
      const NoGrad off;
      Tensor(own[i].second).copy_(stored(in.data));
      if (in.grad != oracle::nothing) expect_gradient(own[i].second, in);
    }
  }
  void close(const Tensor& got, const Tensor& want, const std::string& what) const {
    ASSERT_EQ(got.shape(), want.shape()) << what;
    EXPECT_TRUE(allclose(got.detach(), want, {.rtol = 1e-9, .atol = 1e-11}))
        << what << " of " << c.op << " " << c.label;
  }
  void results(const Tensors& ys) const {
    ASSERT_EQ(ys.size(), c.outputs.size());
    Tensors cotangents;
    for (size_t i = 0; i < ys.size(); ++i) {
      close(ys[i], stored(c.outputs[i].data), "result " + std::to_string(i));
      cotangents.push_back(stored({f64, c.outputs[i].data.shape, c.outputs[i].cotangent}));
    }
    for (const bool create : {false, true}) {
      const Tensors found = grad(ys, wanted, {cotangents, true, create, true});
      for (size_t i = 0; i < found.size(); ++i)
        close(found[i], answers[i], (create ? "composed gradient " : "gradient ") + std::to_string(i));
    }
  }
};

// As functions: of the same weights they give the same bits.
LSTMOutput as_function(const std::string& op, const Tensor& x, const nn::LSTMInput& in, const Tensors& params,
                       const nn::RecurrentOptions& given) {
  const RecurrenceOptions o{.has_biases = given.bias,
                            .num_layers = given.num_layers,
                            .bidirectional = given.bidirectional,
                            .batch_first = given.batch_first,
                            .lengths = in.lengths};
  if (op == "lstm") return lstm(x, {in.h_0, in.c_0}, params, o);
  const auto f = op == "gru" ? gru : given.nonlinearity.of("rnn", "") == nn::Nonlinearity::tanh ? rnn_tanh : rnn_relu;
  const auto [y, h] = f(x, in.h_0, params, o);
  return {y, h, {}};
}

template <class L> void recurrent(const Case& c) {
  Check check(c);
  const Args& a = c.args;
  nn::RecurrentOptions o;
  o.num_layers = a.whole("num_layers", 1), o.bidirectional = a.has("bidirectional");
  o.batch_first = a.has("batch_first"), o.bias = !a.has("bias"), o.proj_size = a.whole("proj_size", 0);
  if (a.has("nonlinearity")) o.nonlinearity = a.text("nonlinearity");
  L layer(3, 5, o);
  check.load(layer);
  nn::LSTMInput in;
  in.lengths = a.list("lengths");
  if (check.inputs.size() > 1) in.h_0 = check.inputs[1];
  if (check.inputs.size() > 2) in.c_0 = check.inputs[2];
  const nn::LSTMOutput y = layer.run(check.inputs[0], in);
  Tensors results{y.output, y.h_n};
  if (y.c_n.defined()) results.push_back(y.c_n);
  check.results(results);
  const Tensors params(check.wanted.end() - int64_t(parameters(layer).size()), check.wanted.end());
  const LSTMOutput f = as_function(c.op, check.inputs[0], in, params, o);
  EXPECT_TRUE(equal(f.output.detach(), y.output.detach()));
  check.results(y.c_n.defined() ? Tensors{f.output, f.h_n, f.c_n} : Tensors{f.output, f.h_n});
  if (in.lengths.empty()) return;
  const PackedSequence packed = pack_padded_sequence(check.inputs[0], in.lengths, o.batch_first);
  const nn::PackedLSTMOutput z = layer.run(packed, {in.h_0, in.c_0});
  check.close(pad_packed_sequence(z.output, o.batch_first).data, y.output.detach(), "packed output");
}

nn::TransformerOptions transformer_options(const Args& a) {
  nn::TransformerOptions o;
  o.dim_feedforward = 7, o.dropout = 0, o.norm_first = a.has("norm_first"), o.batch_first = a.has("batch_first");
  o.bias = !a.has("bias");
  if (a.has("activation")) o.activation = a.text("activation");
  return o;
}

void multihead(const Case& c) {
  Check check(c);
  const Args& a = c.args;
  nn::MultiheadOptions o;
  o.batch_first = a.has("batch_first"), o.bias = !a.has("bias"), o.add_bias_kv = a.has("add_bias_kv");
  o.add_zero_attn = a.has("add_zero_attn"), o.kdim = a.maybe("kdim"), o.vdim = a.maybe("vdim");
  nn::MultiheadAttention layer(6, a.whole("heads", 2), o);
  check.load(layer);
  nn::MultiheadInput in;
  in.need_weights = true, in.average_attn_weights = a.whole("average", 1) != 0;
  size_t next = 3;
  if (a.has("key_padding_mask")) in.key_padding_mask = check.inputs[next++];
  if (a.has("attn_mask")) in.attn_mask = check.inputs[next++];
  const Tensors& x = check.inputs;
  const auto run = [&] { return a.has("own") ? layer(x[0], x[0], x[0], in) : layer(x[0], x[1], x[2], in); };
  const nn::MultiheadOutput y = run();
  check.results({y.output, y.weights});
  in.need_weights = false;
  check.close(run().output, y.output.detach(), "fused output");
}

Tensor later(int64_t n) { return nn::generate_square_subsequent_mask(n, {.dtype = f64}); }

using Run = void (*)(const Case&);
const std::map<std::string, Run> runs = {
    {"rnn", recurrent<nn::RNN>},
    {"gru", recurrent<nn::GRU>},
    {"lstm", recurrent<nn::LSTM>},
    {"rnn_cell",
     [](const Case& c) {
       Check check(c);
       nn::RNNCell cell(3, 5, {c.args.flag("bias")});
       check.load(cell);
       check.results({cell(check.inputs[0], check.inputs[1])});
     }},
    {"gru_cell",
     [](const Case& c) {
       Check check(c);
       nn::GRUCell cell(3, 5, {c.args.flag("bias")});
       check.load(cell);
       check.results({cell(check.inputs[0], check.inputs[1])});
     }},
    {"lstm_cell",
     [](const Case& c) {
       Check check(c);
       nn::LSTMCell cell(3, 5, {c.args.flag("bias")});
       check.load(cell);
       const auto [h, next] = cell(check.inputs[0], {check.inputs[1], check.inputs[2]});
       check.results({h, next});
     }},
    {"attention",
     [](const Case& c) {
       Check check(c);
       AttentionOptions o;
       o.is_causal = c.args.has("is_causal"), o.enable_gqa = c.args.flag("enable_gqa");
       if (c.args.has("scale")) o.scale = c.args.number("scale", 0);
       if (check.inputs.size() > 3) o.attn_mask = check.inputs[3];
       check.results({scaled_dot_product_attention(check.inputs[0], check.inputs[1], check.inputs[2], o)});
     }},
    {"multihead", multihead},
    {"encoder_layer",
     [](const Case& c) {
       Check check(c);
       nn::TransformerEncoderLayer layer(4, 2, transformer_options(c.args));
       check.load(layer);
       check.results({layer(check.inputs[0], {.is_causal = c.args.has("causal")})});
     }},
    {"decoder_layer",
     [](const Case& c) {
       Check check(c);
       nn::TransformerDecoderLayer layer(4, 2, transformer_options(c.args));
       check.load(layer);
       check.results({layer(check.inputs[0], check.inputs[1], {.tgt_mask = later(3)})});
     }},
    {"transformer",
     [](const Case& c) {
       Check check(c);
       nn::Transformer model(4, 2, 2, 1, {.dim_feedforward = 6, .dropout = 0});
       check.load(model);
       check.results({model(check.inputs[0], check.inputs[1], {}, {.tgt_mask = later(3)})});
     }},
};

class SequenceOracle : public testing::TestWithParam<std::string> {};
TEST_P(SequenceOracle, AnswersAsPyTorch) {
  for (const Case& c : data().cases.at(GetParam())) {
    runs.at(GetParam())(c);
    if (HasFatalFailure()) FAIL() << c.op << " " << c.label;
  }
}
std::vector<std::string> names() {
  std::vector<std::string> list;
  for (const auto& [name, run] : runs) list.push_back(name);
  return list;
}
INSTANTIATE_TEST_SUITE_P(All, SequenceOracle, testing::ValuesIn(names()), [](const auto& i) { return i.param; });

TEST(SequenceOracleCases, AreAllRun) { EXPECT_EQ(data().cases.size(), runs.size()); }

}  // namespace
}  // namespace volta
