// Samples of what networks are made of: convolution, pooling, norms, attention, resampling, embeddings, recurrence, sequences.
#include "samples.h"

namespace volta::test {
namespace {

using List = std::vector<Sample>;

Shape with(Shape front, int axes, int64_t size) {
  for (int i = 0; i < axes; ++i) front.push_back(size);
  return front;
}

template <class Options>
using WithOptions = Tensor (*)(const Tensor& x, const Tensor& weight, const Tensor& bias, const Options& options);

void add_conv(List& list) {
  constexpr WithOptions<ConvOptions> conv[] = {conv1d, conv2d, conv3d};
  constexpr WithOptions<ConvTransposeOptions> transpose[] = {conv_transpose1d, conv_transpose2d, conv_transpose3d};
  const std::pair<const char*, ConvOptions> ways[] = {{"plain", {}},
                                                      {"strided", {.stride = 2, .padding = 1}},
                                                      {"dilated", {.padding = "same", .dilation = 2}},
                                                      {"grouped", {.padding = 1, .groups = 2}},
                                                      {"im2col", {.algorithm = "im2col", .chunk = 2}}};
  const std::pair<const char*, ConvTransposeOptions> back[] = {
      {"plain", {}},
      {"strided", {.stride = 2, .padding = 1, .output_padding = 1}},
      {"dilated", {.dilation = 2}},
      {"grouped", {.stride = 2, .groups = 2}}};
  for (int n = 1; n <= 3; ++n) {
    const std::string op = "conv" + std::to_string(n) + "d", reverse = "conv_transpose" + std::to_string(n) + "d";
    const int64_t size = n == 3 ? 3 : 5, kernel = n == 3 ? 2 : 3;
    for (const auto& [label, o] : ways)
      list.push_back(one(op, op + " " + label,
                         {{with({2, 2}, n, size)}, {with({4, 2 / o.groups}, n, kernel)}, optional({4})},
                         [f = conv[n - 1], o = o](const Tensors& x) { return f(x[0], x[1], x[2], o); }));
    list.push_back(one(op, op + " one image", {{with({2}, n, size)}, {with({3, 2}, n, kernel)}},
                       [f = conv[n - 1]](const Tensors& x) { return f(x[0], x[1], {}, {}); }));
    for (const auto& [label, o] : back)
      list.push_back(one(reverse, reverse + " " + label,
                         {{with({1, 2}, n, 3)}, {with({2, 4 / o.groups}, n, kernel)}, optional({4})},
                         [f = transpose[n - 1], o = o](const Tensors& x) { return f(x[0], x[1], x[2], o); }));
  }
}

// f(axes) as a sample of the op of so many axes.
template <class F>
void of_axes(List& list, const char* before, const char* after, const std::string& label, F f, double low = -2) {
  for (int n = 1; n <= 3; ++n) {
    const std::string op = before + std::to_string(n) + after;
    std::string name = op;
    name.append(" ").append(label);
    list.push_back(one(op, std::move(name), {{with({2, 2}, n, n == 3 ? 4 : 6), low}}, f(n)));
  }
}

Tensors both(const ValuesIndices& r) { return {r.values, r.indices}; }

constexpr Tensor (*max_pool[])(const Tensor&, const PerAxis&, const MaxPoolOptions&) = {max_pool1d, max_pool2d,
                                                                                        max_pool3d};
constexpr ValuesIndices (*max_at[])(const Tensor&, const PerAxis&, const MaxPoolOptions&) = {
    max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices};
constexpr Tensor (*avg_pool[])(const Tensor&, const PerAxis&, const AvgPoolOptions&) = {avg_pool1d, avg_pool2d,
                                                                                        avg_pool3d};
constexpr Tensor (*lp_pool[])(const Tensor&, double, const PerAxis&, const LPPoolOptions&) = {lp_pool1d, lp_pool2d,
                                                                                              lp_pool3d};
constexpr Tensor (*unpool[])(const Tensor&, const Tensor&, const PerAxis&, const MaxUnpoolOptions&) = {
    max_unpool1d, max_unpool2d, max_unpool3d};
constexpr decltype(&adaptive_avg_pool1d) adaptive_avg[] = {adaptive_avg_pool1d, adaptive_avg_pool2d,
                                                           adaptive_avg_pool3d};
constexpr decltype(&adaptive_max_pool1d) adaptive_max[] = {adaptive_max_pool1d, adaptive_max_pool2d,
                                                           adaptive_max_pool3d};
constexpr decltype(&adaptive_max_pool1d_with_indices) adaptive_at[] = {
    adaptive_max_pool1d_with_indices, adaptive_max_pool2d_with_indices, adaptive_max_pool3d_with_indices};

void add_pools(List& list) {
  for (const MaxPoolOptions& o : {MaxPoolOptions{}, MaxPoolOptions{.stride = 2, .padding = 1, .ceil_mode = true},
                                  MaxPoolOptions{.stride = 1, .dilation = 2}}) {
    const char* label = o.ceil_mode ? "padded" : o.stride.given().empty() ? "plain" : "dilated";
    of_axes(list, "max_pool", "d", label,
            [&](int n) { return [n, o](auto& x) { return max_pool[n - 1](x[0], 2, o); }; });
  }
  of_axes(list, "max_pool", "d_with_indices", "",
          [](int n) { return [n](auto& x) { return both(max_at[n - 1](x[0], 3, {.stride = 1})); }; });
  for (const AvgPoolOptions& o :
       {AvgPoolOptions{}, AvgPoolOptions{.stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false},
        AvgPoolOptions{.stride = 1, .divisor_override = 5}}) {
    const char* label = o.ceil_mode ? "padded" : o.divisor_override ? "divided" : "plain";
    of_axes(list, "avg_pool", "d", label,
            [&](int n) { return [n, o](auto& x) { return avg_pool[n - 1](x[0], 2, o); }; });
  }
  for (double p : {1.0, 2.0, 3.0})
    of_axes(
        list, "lp_pool", "d", std::to_string(int(p)),
        [&](int n) { return [n, p](auto& x) { return lp_pool[n - 1](x[0], p, 2, {.ceil_mode = p == 2}); }; }, 0.5);
  for (int64_t size : {1, 3})
    of_axes(list, "adaptive_avg_pool", "d", std::to_string(size),
            [=](int n) { return [n, size](auto& x) { return adaptive_avg[n - 1](x[0], size); }; });
  of_axes(list, "adaptive_max_pool", "d", "",
          [](int n) { return [n](auto& x) { return adaptive_max[n - 1](x[0], 3); }; });
  of_axes(list, "adaptive_max_pool", "d_with_indices", "",
          [](int n) { return [n](auto& x) { return both(adaptive_at[n - 1](x[0], 3)); }; });
  for (int n = 1; n <= 3; ++n) {  // places of their own, so that none is put where another is
    const std::string op = "max_unpool" + std::to_string(n) + "d";
    const Tensor place = arange(int64_t(1) << n).reshape(with({1, 1}, n, 2)).expand(with({2, 2}, n, 2)).clone();
    list.push_back(one(op, op, {{with({2, 2}, n, 2)}},
                       [=](const Tensors& x) { return unpool[n - 1](x[0], beside(x[0], place), 2, {}); }));
  }
  const auto fractional = [&](const char* op, int axes, auto f) {
    list.push_back(one(op, op, {{with({2, 2}, axes, axes == 2 ? 6 : 4)}}, [=](const Tensors& x) {
      const Tensor places = beside(x[0], full({2, 2, axes}, 0.3));
      return f(x[0], FractionalPoolOptions{.output_size = 2, .random_samples = places});
    }));
  };
  fractional("fractional_max_pool2d", 2, [](auto& x, const auto& o) { return fractional_max_pool2d(x, 2, o); });
  fractional("fractional_max_pool3d", 3, [](auto& x, const auto& o) { return fractional_max_pool3d(x, 2, o); });
  fractional("fractional_max_pool2d_with_indices", 2,
             [](auto& x, const auto& o) { return both(fractional_max_pool2d_with_indices(x, 2, o)); });
  fractional("fractional_max_pool3d_with_indices", 3,
             [](auto& x, const auto& o) { return both(fractional_max_pool3d_with_indices(x, 2, o)); });
}

void add_norms(List& list) {
  const Input image{{3, 4, 5}}, channels = optional({4}), spread{{4}, 0.5, 2}, row = optional({5});
  const auto add = [&](const char* op, const std::string& label, std::vector<Input> inputs, auto f) {
    list.push_back(one(op, op + (" " + label), std::move(inputs), f));
  };
  add("layer_norm", "affine", {image, row, row}, [](auto& x) { return layer_norm(x[0], {5}, x[1], x[2]); });
  add("layer_norm", "plain", {image}, [](auto& x) { return layer_norm(x[0], {4, 5}); });
  add("rms_norm", "affine", {image, row}, [](auto& x) { return rms_norm(x[0], {5}, x[1]); });
  add("rms_norm", "plain", {image}, [](auto& x) { return rms_norm(x[0], {4, 5}, {}, 0.1); });
  add("group_norm", "affine", {image, channels, channels}, [](auto& x) { return group_norm(x[0], 2, x[1], x[2]); });
  add("group_norm", "plain", {image}, [](auto& x) { return group_norm(x[0], 4); });
  add("batch_norm", "training", {image, channels, channels},
      [](auto& x) { return batch_norm(x[0], {}, {}, x[1], x[2], true); });
  add("batch_norm", "running", {image},
      [](auto& x) { return batch_norm(x[0], beside(x[0], zeros({4})), beside(x[0], ones({4})), {}, {}, true); });
  add("batch_norm", "eval", {image, {{4}}, spread, channels, channels},
      [](auto& x) { return batch_norm(x[0], x[1], x[2], x[3], x[4]); });
  add("instance_norm", "affine", {image, channels, channels},
      [](auto& x) { return instance_norm(x[0], {}, {}, x[1], x[2]); });
  add("instance_norm", "plain", {image}, [](auto& x) { return instance_norm(x[0]); });
  add("instance_norm", "running", {image, {{4}}, spread},
      [](auto& x) { return instance_norm(x[0], x[1], x[2], {}, {}, false); });
  add("local_response_norm", "3", {image}, [](auto& x) { return local_response_norm(x[0], 3, 0.5); });
  for (double p : {1.0, 2.0, 3.0})
    add("normalize", std::to_string(int(p)), {image}, [p](auto& x) { return normalize(x[0], p); });
  add("cosine_similarity", "", {image, {{1, 4, 5}}}, [](auto& x) { return cosine_similarity(x[0], x[1], -1); });
  add("pairwise_distance", "2", {image, {{4, 5}}}, [](auto& x) { return pairwise_distance(x[0], x[1]); });
  add("pairwise_distance", "3", {image, image}, [](auto& x) { return pairwise_distance(x[0], x[1], 3, 0.1, true); });
}

void add_attention(List& list) {
  const Input q{{2, 2, 3, 4}}, k{{2, 2, 5, 4}}, v{{2, 2, 5, 3}};
  const auto add = [&](const std::string& label, std::vector<Input> inputs, auto options) {
    list.push_back(one("scaled_dot_product_attention", "attention " + label, std::move(inputs),
                       [=](const Tensors& x) { return scaled_dot_product_attention(x[0], x[1], x[2], options(x)); }));
  };
  add("plain", {q, k, v}, [](auto&) { return AttentionOptions{}; });
  add("causal", {q, k, v}, [](auto&) { return AttentionOptions{.is_causal = true, .scale = 0.7}; });
  add("truths", {q, k, v, truths({3, 5}, true)}, [](auto& x) { return AttentionOptions{.attn_mask = x[3]}; });
  add("added", {q, k, v, optional({2, 1, 3, 5})}, [](auto& x) { return AttentionOptions{.attn_mask = x[3]}; });
  add("one query", {{{2, 1, 4}}, {{2, 5, 4}}, {{2, 5, 3}}}, [](auto&) { return AttentionOptions{}; });
  add("groups", {{{2, 4, 3, 4}}, k, v}, [](auto&) { return AttentionOptions{.is_causal = true, .enable_gqa = true}; });
  add("dropout", {q, k, v}, [](auto&) {
    manual_seed(5);
    return AttentionOptions{.dropout_p = 0.3};
  });
  for (bool interleaved : {false, true})
    list.push_back(one("rotary_positions", interleaved ? "rotary pairs" : "rotary halves", {{{2, 3, 4}}},
                       [=](auto& x) { return rotary_positions(x[0], {.offset = 2, .interleaved = interleaved}); }));
}

void add_resampling(List& list) {
  struct Way {
    const char* mode;
    int axes;
    bool align_corners, antialias;
    double factor;
  };
  for (const Way& w :
       {Way{"nearest", 1, false, false, 1.7}, Way{"nearest-exact", 2, false, false, 0.6},
        Way{"linear", 1, true, false, 1.7}, Way{"bilinear", 2, false, false, 1.7}, Way{"bilinear", 2, false, true, 0.5},
        Way{"trilinear", 3, true, false, 1.5}, Way{"bicubic", 2, false, false, 1.5},
        Way{"bicubic", 2, false, true, 0.6}, Way{"area", 2, false, false, 0.6}})
    list.push_back(one(
        "interpolate", "interpolate " + std::string(w.mode) + (w.antialias ? " antialias" : ""),
        {{with({1, 2}, w.axes, w.axes == 3 ? 3 : 5)}}, [w](const Tensors& x) {
          return interpolate(
              x[0],
              {.scale_factor = w.factor, .mode = w.mode, .align_corners = w.align_corners, .antialias = w.antialias});
        }));
  for (const char* mode : {"bilinear", "nearest", "bicubic"})
    for (const char* padding : {"zeros", "border", "reflection"})
      list.push_back(one("grid_sample", std::string("grid_sample ") + mode + " " + padding,
                         {{{1, 2, 4, 5}}, {{1, 3, 2, 2}, -1.3, 1.3}}, [=](const Tensors& x) {
                           return grid_sample(x[0], x[1], {.mode = mode, .padding_mode = padding});
                         }));
  list.push_back(one("grid_sample", "grid_sample volume", {{{1, 1, 3, 3, 3}}, {{1, 2, 2, 1, 3}, -0.9, 0.9}},
                     [](const Tensors& x) { return grid_sample(x[0], x[1], {.align_corners = true}); }));
  list.push_back(one("affine_grid", "affine_grid", {{{2, 2, 3}}}, [](auto& x) {
    return affine_grid(x[0], {2, 1, 3, 4});
  }));
  list.push_back(one("affine_grid", "affine_grid volume", {{{1, 3, 4}}}, [](auto& x) {
    return affine_grid(x[0], {1, 1, 2, 3, 2}, true);
  }));
  list.push_back(one("im2col", "im2col", {{{2, 2, 5, 4}}}, [](auto& x) {
    return im2col(x[0], {3, 2}, {.padding = 1, .stride = 2});
  }));
  list.push_back(
      one("im2col", "im2col dilated", {{{2, 5, 5}}}, [](auto& x) { return im2col(x[0], 2, {.dilation = 2}); }));
  list.push_back(one("col2im", "col2im", {{{2, 12, 9}}}, [](auto& x) {
    return col2im(x[0], {5, 4}, {3, 2}, {.padding = {1, 0}, .stride = {2, 1}});
  }));
}

void add_activations(List& list) {
  const Input image{{2, 4, 3}};
  const auto add = [&](const char* op, const std::string& label, std::vector<Input> inputs, auto f) {
    list.push_back(one(op, op + (" " + label), std::move(inputs), f));
  };
  add("glu", "", {image}, [](auto& x) { return glu(x[0], 1); });
  add("softmin", "", {image}, [](auto& x) { return softmin(x[0], 1); });
  add("prelu", "channels", {image, {{4}}}, [](auto& x) { return prelu(x[0], x[1]); });
  add("prelu", "one", {image, {{1}}}, [](auto& x) { return prelu(x[0], x[1]); });
  add("rrelu", "eval", {image}, [](auto& x) { return rrelu(x[0]); });
  add("rrelu", "training", {image}, [](auto& x) {
    manual_seed(3);
    return rrelu(x[0], 0.2, 0.20001, true);
  });
  add("pixel_shuffle", "", {{{2, 8, 3, 2}}}, [](auto& x) { return pixel_shuffle(x[0], 2); });
  add("channel_shuffle", "", {{{2, 6, 3}}}, [](auto& x) { return channel_shuffle(x[0], 3); });
  add("pixel_unshuffle", "", {{{3, 4, 6}}}, [](auto& x) { return pixel_unshuffle(x[0], 2); });
  add("gelu", "tanh", {image}, [](auto& x) { return gelu(x[0], {.approximate = "tanh"}); });
  add("gumbel_softmax", "", {image}, [](auto& x) {
    manual_seed(4);
    return gumbel_softmax(x[0], 0.7, false, 1);
  });
  using Drop = Tensor (*)(const Tensor&, double, bool);
  constexpr std::pair<const char*, Drop> drops[] = {{"dropout", dropout},
                                                    {"feature_dropout", feature_dropout},
                                                    {"alpha_dropout", alpha_dropout},
                                                    {"feature_alpha_dropout", feature_alpha_dropout}};
  for (const auto& [op, drop] : drops) {
    add(op, "training", {image}, [drop = drop](auto& x) {
      manual_seed(3);
      return drop(x[0], 0.4, true);
    });
    add(op, "eval", {image}, [drop = drop](auto& x) { return drop(x[0], 0.4, false) * 1; });
  }
  for (bool biased : {false, true})
    add("bilinear", biased ? "biased" : "plain", {{{2, 3}}, {{2, 4}}, {{5, 3, 4}}, optional({5})},
        [=](auto& x) { return bilinear(x[0], x[1], x[2], x[3]); });
}

void add_embeddings(List& list) {
  const Input table{{5, 3}}, ids = integers({2, 4}, 5);
  const auto add = [&](const char* op, const std::string& label, std::vector<Input> inputs, auto f) {
    list.push_back(one(op, op + (" " + label), std::move(inputs), f));
  };
  add("embedding", "padding", {integers({2, 4}, 4), table},
      [](auto& x) { return embedding(x[0], x[1], {.padding_idx = 4}); });
  for (const char* mode : {"sum", "mean", "max"}) {
    add("embedding_bag", std::string("rows ") + mode, {ids, table},
        [mode](auto& x) { return embedding_bag(x[0], x[1], {}, {.mode = mode}); });
    add("embedding_bag", std::string("offsets ") + mode, {integers({7}, 5), table}, [mode](auto& x) {
      return embedding_bag(x[0], x[1], beside(x[0], tensor({0, 3, 3})), {.mode = mode});
    });
  }
  add("embedding_bag", "weighted", {ids, table, optional({2, 4})},
      [](auto& x) { return embedding_bag(x[0], x[1], {}, {.mode = "sum"}, x[2]); });
  const Input batch{{4, 3, 2}};
  add("pack_padded_sequence", "", {batch}, [](auto& x) { return pack_padded_sequence(x[0], {2, 4, 1}).data; });
  add("pack_padded_sequence", "batch first", {{{3, 4, 2}}}, [](auto& x) {
    return pack_padded_sequence(x[0], {2, 4, 1}, true).data;
  });
  add("pad_packed_sequence", "", {{{7, 2}}}, [](auto& x) {
    return pad_packed_sequence({x[0], {3, 2, 1, 1}, {1, 0, 2}}, true, 1).data;
  });
  for (const char* side : {"right", "left"})
    add("pad_sequence", side, {{{2, 3}}, {{4, 3}}, {{1, 3}}}, [side](auto& x) {
      return pad_sequence({x[0], x[1], x[2]}, {.padding_value = 1, .padding_side = side});
    });
  add("unpad_sequence", "", {batch}, [](auto& x) { return unpad_sequence(x[0], {2, 4, 1}); });
  add("pack_sequence", "", {{{2, 3}}, {{4, 3}}}, [](auto& x) { return pack_sequence({x[0], x[1]}).data; });
}

// A kind of recurrence: over sequences and as a step, called alike. Of the weights of a step, biases may be left out.
struct Recurrence {
  const char* op;
  int64_t gates, states;
  Tensors (*sequence)(const Tensor& x, const Tensors& hx, const Tensors& params, const RecurrenceOptions& o);
  Tensors (*step)(const Tensor& x, const Tensors& hx, const Tensors& w);
};
Tensors both(const RecurrentOutput& y) { return {y.output, y.h_n}; }
const Recurrence recurrences[] = {
    {"rnn_tanh", 1, 1, [](auto& x, auto& hx, auto& w, auto& o) { return both(rnn_tanh(x, hx[0], w, o)); },
     [](auto& x, auto& hx, auto& w) { return Tensors{rnn_tanh_cell(x, hx[0], w[0], w[1], w[2], w[3])}; }},
    {"rnn_relu", 1, 1, [](auto& x, auto& hx, auto& w, auto& o) { return both(rnn_relu(x, hx[0], w, o)); },
     [](auto& x, auto& hx, auto& w) { return Tensors{rnn_relu_cell(x, hx[0], w[0], w[1], w[2], w[3])}; }},
    {"gru", 3, 1, [](auto& x, auto& hx, auto& w, auto& o) { return both(gru(x, hx[0], w, o)); },
     [](auto& x, auto& hx, auto& w) { return Tensors{gru_cell(x, hx[0], w[0], w[1], w[2], w[3])}; }},
    {"lstm", 4, 2,
     [](auto& x, auto& hx, auto& w, auto& o) {
       const auto [y, h, c] = lstm(x, hx, w, o);
       return Tensors{y, h, c};
     },
     [](auto& x, auto& hx, auto& w) {
       const auto [h, c] = lstm_cell(x, hx, w[0], w[1], w[2], w[3]);
       return Tensors{h, c};
     }}};

void add_recurrence(List& list) {
  struct Way {
    const char* label;
    Shape x, state;
    int64_t out, inner;  // of the states, and of an LSTM's cells
    RecurrenceOptions options;
  };
  const Way ways[] = {{"plain", {3, 2, 3}, {1, 2}, 2, 2, {}},
                      {"alone", {3, 3}, {1}, 2, 2, {.has_biases = false}},
                      {"lengths", {2, 3, 3}, {1, 2}, 2, 2, {.batch_first = true, .lengths = {3, 2}}},
                      {"layers", {3, 2, 2}, {4, 2}, 1, 1, {.num_layers = 2, .bidirectional = true}},
                      {"dropout", {3, 2, 2}, {2, 2}, 2, 2, {.num_layers = 2, .dropout = 0.4, .train = true}},
                      {"projected", {3, 2, 2}, {1, 2}, 1, 2, {}}};
  const auto values = [](const Shape& shape) { return Input{shape, -0.8, 0.8}; };
  const auto split = [](const Tensors& x, int64_t states) {
    return std::pair(Tensors(x.begin() + 1, x.begin() + 1 + states), Tensors(x.begin() + 1 + states, x.end()));
  };
  for (const Recurrence& r : recurrences) {
    for (const Way& w : ways) {
      if (w.out != w.inner && r.states == 1) continue;  // projections are an LSTM's
      std::vector<Input> in{{w.x}};
      for (int64_t i = 0; i < r.states; ++i) {
        Shape state = w.state;
        state.push_back(i == 0 ? w.out : w.inner);
        in.push_back(optional(state));
      }
      const int64_t directions = w.options.bidirectional ? 2 : 1, rows = r.gates * w.inner;
      for (int64_t i = 0; i < w.options.num_layers * directions; ++i) {
        const int64_t inputs = i < directions ? w.x[w.x.size() - 1] : directions * w.out;
        in.push_back(values({rows, inputs})), in.push_back(values({rows, w.out}));
        if (w.options.has_biases) in.push_back(values({rows})), in.push_back(values({rows}));
        if (w.out != w.inner) in.push_back(values({w.out, w.inner}));
      }
      list.push_back(one(r.op, r.op + (" " + std::string(w.label)), std::move(in), [&r, split, o = w.options](auto& x) {
        if (o.train) manual_seed(3);
        const auto [hx, params] = split(x, r.states);
        return r.sequence(x[0], hx, params, o);
      }));
    }
    const std::string op = std::string(r.op) + "_cell";
    for (const bool alone : {false, true}) {
      std::vector<Input> in{{alone ? Shape{3} : Shape{2, 3}}};
      for (int64_t i = 0; i < r.states; ++i) in.push_back(optional(alone ? Shape{2} : Shape{2, 2}));
      in.push_back(values({2 * r.gates, 3})), in.push_back(values({2 * r.gates, 2}));
      if (!alone) in.push_back(optional({2 * r.gates})), in.push_back(optional({2 * r.gates}));
      list.push_back(one(op, op + (alone ? " alone" : " batch"), std::move(in), [&r, split](auto& x) {
        auto [hx, w] = split(x, r.states);
        w.resize(4);
        return r.step(x[0], hx, w);
      }));
    }
  }
}

}  // namespace

void add_layers(List& list) {
  add_conv(list), add_pools(list), add_norms(list), add_attention(list);
  add_resampling(list), add_activations(list), add_embeddings(list), add_recurrence(list);
}

}  // namespace volta::test
