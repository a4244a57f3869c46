// What the examples in the comments of the public headers take for granted; tools/check_docs puts it before each of them.
// A line `// for PATH` begins what only the examples of one header need.
Tensor x, y, w, b, v, q, k, h, c, a, g, p, h0, c0, t, loss, bias, scale, logits, labels, target, ids, offsets, table,
    tokens, indices, mask;
Tensor src, tgt, memory, weights, lengths, images, width;
nn::Linear model(2, 2), net(2, 2), fc(2, 2), layer(2, 2), block(2, 2), body(2, 2), head(2, 2), blocks(2, 2),
    embedding(2, 2);
nn::Conv2d conv(2, 2, 3);
nn::Sequential seq;
nn::GRU gru(2, 2);
nn::LSTM lstm(2, 2);
std::vector<Tensor> params;
std::vector<std::pair<Tensor, Tensor>> batches;
optim::SGD opt(params), optimizer(params);
optim::Optimizer::Closure closure;
optim::StepLR scheduler(opt, {});
data::TensorDataset set(x, y);
data::DataLoader loader(set), test_loader(set);
StateDict state, foreign;
std::vector<float> values;
std::string text, path;
int64_t step = 0;
double lr = 0.1;
bool cond = true;

// for create.h
std::vector<float> v;

// for custom_op.h
struct Bump {
  static constexpr auto name = "bump";
  template <class T> static constexpr T f(T x, T width) { return x * width; }
};

// for data/collate.h
std::pair<Tensor, Tensor> a, b;

// for data/csv.h
data::Table table = data::read_csv("a.csv");

// for data/dataset.h
struct Rows {
  int64_t size() const;
  Tensor get(int64_t i) const;
};
Rows a, b, c;

// for data/functional.h
using volta::data::functional::resize;

// for data/sampler.h
std::vector<double> weights;

// for data/text.h
data::ByteTokenizer tokenizer;

// for io/checkpoint.h
CheckpointFolder folder("runs");
double loss = 0;

// for io/npy.h
std::string body;

// for io/state_map.h
StateMap map;
const auto rename_pattern = [](const std::string& a, const std::string& b) { return StateMap().rename_pattern(a, b); };

// for io/torch_file.h
TorchValue value;

// for nn/attention.h
nn::MultiheadAttention attn(8, 2);
nn::KeyValueCache c;

// for nn/containers.h
struct Block {
  int config;
};
int config = 0;
nn::AnyModule m;

// for nn/conv.h
nn::ConvTranspose2d up(2, 2, 2);

// for nn/layer.h
const auto f = [](const char*, auto&) {};
nn::Parameter weight, bias;

// for nn/model.h
struct Net {
  nn::Linear backbone{2, 2};
  Tensor operator()(const Tensor& x) const { return backbone(x); }
};
Net net, gpt;
nn::Part part = named_modules(net)[0].second;

// for nn/parameter.h
nn::BatchNorm1d norm(8);

// for nn/reparametrize.h
struct Normed : nn::WeightNorm<nn::Linear>, nn::SpectralNorm<nn::Linear> {
  Normed();
};
Normed normed;

// for nn/transformer.h
nn::TransformerEncoderLayer layer(8, 2);

// for ops.h
struct Mean : Tensor {  // a tensor to batch_norm, a function elsewhere
  Tensor operator()(const Tensor& x, const Axes& dim, bool keepdim) const { return volta::mean(x, dim, keepdim); }
};
struct Var : Tensor {
  Tensor operator()(const Tensor& x, const Axes& dim, const VarOptions& o) const { return volta::var(x, dim, o); }
};
Mean mean;
Var var;
Tensor x, y, z, a, b, c, u, v, w, m, q, k, p, i, j, n, h, bias, mask, ids, offsets, indices, edges, theta, columns;
Tensor scores, labels, logits, log_variance, variance, log_rate, log_probs, counts, distance, targets, padded, table;
Tensor anchor, positive, negative, weight, w_ih, w_hh, b_ih, b_hh, h0, c0;
nn::Linear model(2, 2);
std::vector<int64_t> input_lengths, target_lengths, lengths;
PackedSequence packed;
bool training = true;
const auto f = [](const Tensor& s, const Tensor&) { return s; };

// for ops/packed_sequence.h
std::vector<int64_t> order;
size_t i = 0;

// for optim/average.h
const auto evaluate = [](auto&) {};
nn::Linear other(2, 2);
optim::EMA ema(parameters(model)), saved(parameters(model));

// for optim/fused_update.h
optim::State state;

// for optim/grad_scaler.h
GradScaler scaler;

// for optim/optimizer.h
optim::SGD other(params);

// for optim/schedule.h
optim::StepLR other(opt, {});
double loss = 0;

// for train/callbacks.h
const auto write = [](auto&, int64_t) {};

// for train/history.h
History history;
