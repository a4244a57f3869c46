// Functions and layers of networks: shapes that mostly fit, options of any size.
#include "source.h"

namespace volta::fuzz {
namespace {

using Tensors = std::vector<Tensor>;

Shape joined(Shape a, const Shape& b) {
  for (const int64_t n : b) a.push_back(n);
  return a;
}
// n sizes of a tensor; one in twenty is 0.
Shape some(Source& s, int n, int64_t low = 1, int64_t high = 7) {
  Shape shape;
  for (int i = 0; i < n; ++i) shape.push_back(s.chance(3) ? 0 : s.within(low, high));
  return shape;
}
ConvPadding padding(Source& s, int axes) {
  if (s.chance(20)) return s.one_of(std::vector<const char*>{"same", "valid", "other"});
  return s.per_axis(axes, 0);
}
ConvOptions conv_options(Source& s, int axes, int64_t groups) {
  return {.stride = s.per_axis(axes),
          .padding = padding(s, axes),
          .dilation = s.per_axis(axes),
          .groups = s.chance(95) ? groups : s.size(),
          .algorithm = s.choice<ConvAlgorithm>(),
          .chunk = s.chance(80) ? 0 : s.size()};
}
ConvTransposeOptions transpose_options(Source& s, int axes, int64_t groups) {
  return {.stride = s.per_axis(axes),
          .padding = s.per_axis(axes, 0),
          .output_padding = s.per_axis(axes, 0),
          .groups = s.chance(95) ? groups : s.size(),
          .dilation = s.per_axis(axes),
          .algorithm = s.choice<ConvAlgorithm>()};
}
// A batch, or none.
Shape batch(Source& s, int64_t channels) { return s.chance(75) ? Shape{s.within(0, 3), channels} : Shape{channels}; }

void add_conv(std::vector<Call>& calls) {
  for (int axes = 1; axes <= 3; ++axes) {
    const std::string d = std::to_string(axes) + "d";
    calls.push_back(
        {"conv" + d, [axes](Source& s) {
           const int64_t groups = s.chance(70) ? 1 : s.within(1, 3), in = groups * s.within(1, 4),
                         out = groups * s.within(1, 4);
           const Tensor x = s.floats(joined(batch(s, in), some(s, axes, 1, axes == 3 ? 5 : 12)));
           const Tensor w = s.floats(joined({out, in / groups}, some(s, axes, 1, 3))), b = s.maybe(s.floats({out}));
           constexpr Tensor (*f[])(const Tensor&, const Tensor&, const Tensor&, const ConvOptions&) = {conv1d, conv2d,
                                                                                                       conv3d};
           return Tensors{f[axes - 1](x, w, b, conv_options(s, axes, groups))};
         }});
    calls.push_back(
        {"conv_transpose" + d, [axes](Source& s) {
           const int64_t groups = s.chance(70) ? 1 : s.within(1, 3), in = groups * s.within(1, 4), out = s.within(1, 4);
           const Tensor x = s.floats(joined(batch(s, in), some(s, axes, 1, axes == 3 ? 4 : 8)));
           const Tensor w = s.floats(joined({in, out}, some(s, axes, 1, 3))), b = s.maybe(s.floats({out * groups}));
           constexpr Tensor (*f[])(const Tensor&, const Tensor&, const Tensor&, const ConvTransposeOptions&) = {
               conv_transpose1d, conv_transpose2d, conv_transpose3d};
           return Tensors{f[axes - 1](x, w, b, transpose_options(s, axes, groups))};
         }});
    const auto layer = [&]<int n>(std::integral_constant<int, n>) {
      calls.push_back({"Conv" + d, [](Source& s) {
                         const int64_t in = s.few();
                         nn::Conv<n> conv(in, s.few(), s.per_axis(n),
                                          {.stride = s.per_axis(n),
                                           .padding = padding(s, n),
                                           .dilation = s.per_axis(n),
                                           .groups = s.chance(80) ? 1 : s.few(),
                                           .bias = s.chance(50),
                                           .padding_mode = s.choice<nn::PaddingMode>()});
                         return Tensors{conv(s.tensor(joined(batch(s, std::min<int64_t>(in, 64)), some(s, n)), f32))};
                       }});
      calls.push_back({"ConvTranspose" + d, [](Source& s) {
                         const int64_t in = s.few();
                         nn::ConvTranspose<n> conv(in, s.few(), s.per_axis(n),
                                                   {.stride = s.per_axis(n), .padding = s.per_axis(n, 0)});
                         const Shape size = s.chance(50) ? Shape() : s.chance(60) ? some(s, n, 1, 20) : s.sizes();
                         return Tensors{
                             conv(s.tensor(joined(batch(s, std::min<int64_t>(in, 64)), some(s, n)), f32), size)};
                       }});
    };
    axes == 1   ? layer(std::integral_constant<int, 1>())
    : axes == 2 ? layer(std::integral_constant<int, 2>())
                : layer(std::integral_constant<int, 3>());
  }
}

void add_pools(std::vector<Call>& calls) {
  for (int axes = 1; axes <= 3; ++axes) {
    const std::string d = std::to_string(axes) + "d";
    const auto x = [axes](Source& s) { return s.floats(joined(batch(s, s.within(1, 3)), some(s, axes, 1, 9))); };
    const auto stride = [axes](Source& s) { return s.chance(40) ? PerAxis{} : s.per_axis(axes); };
    calls.push_back({"max_pool" + d, [=](Source& s) {
                       const MaxPoolOptions o{stride(s), s.per_axis(axes, 0), s.per_axis(axes), s.chance(50)};
                       const auto r = pooling::max(axes, x(s), s.per_axis(axes), o, s.chance(50));
                       return Tensors{r.values};
                     }});
    calls.push_back({"avg_pool" + d, [=](Source& s) {
                       AvgPoolOptions o{stride(s), s.per_axis(axes, 0), s.chance(50), s.chance(50)};
                       if (s.chance(30)) o.divisor_override = s.size();
                       return Tensors{pooling::average(axes, x(s), s.per_axis(axes), o)};
                     }});
    calls.push_back({"lp_pool" + d, [=](Source& s) {
                       return Tensors{pooling::lp(axes, x(s), s.number(), s.per_axis(axes), {stride(s), s.chance(50)})};
                     }});
    calls.push_back({"adaptive_avg_pool" + d,
                     [=](Source& s) { return Tensors{pooling::adaptive_average(axes, x(s), s.per_axis(axes, 0))}; }});
    calls.push_back({"adaptive_max_pool" + d, [=](Source& s) {
                       return Tensors{pooling::adaptive_max(axes, x(s), s.per_axis(axes, 0), s.chance(50)).values};
                     }});
    calls.push_back({"max_unpool" + d, [=](Source& s) {
                       const Tensor y = x(s), i = s.indices(y.shape(), 9);
                       return Tensors{
                           pooling::unpool(axes, y, i, s.per_axis(axes),
                                           {stride(s), s.per_axis(axes, 0), s.chance(50) ? Shape() : s.sizes()})};
                     }});
    if (axes == 1) continue;
    calls.push_back({"fractional_max_pool" + d, [=](Source& s) {
                       FractionalPoolOptions o;
                       if (s.chance(50)) o.output_size = s.per_axis(axes);
                       if (s.chance(50))
                         o.output_ratio = s.chance(50) ? Numbers(s.probability())
                                                       : Numbers(std::vector<double>(size_t(axes), s.number()));
                       if (s.chance(20)) o.random_samples = s.floats({1, 2, axes});
                       const Tensor in = x(s);
                       const auto f =
                           axes == 2 ? fractional_max_pool2d_with_indices : fractional_max_pool3d_with_indices;
                       const auto r = f(in, s.per_axis(axes), o);
                       return Tensors{r.values, r.indices};
                     }});
  }
}

void add_resampling(std::vector<Call>& calls) {
  calls.push_back({"interpolate", [](Source& s) {
                     const int axes = int(s.within(1, 3));
                     InterpolateOptions o;
                     if (s.chance(60)) o.size = s.per_axis(axes);
                     else
                       o.scale_factor =
                           s.chance(50) ? Numbers(s.number()) : Numbers(std::vector<double>(size_t(axes), s.number()));
                     o.mode = s.choice<InterpolateMode>(), o.align_corners = s.chance(30),
                     o.recompute_scale_factor = s.chance(30);
                     o.antialias = s.chance(30);
                     return Tensors{interpolate(s.floats(joined(some(s, 2, 1, 3), some(s, axes))), o)};
                   }});
  calls.push_back({"grid_sample", [](Source& s) {
                     const int axes = int(s.within(2, 3));
                     const int64_t n = s.within(0, 2);
                     const Tensor x = s.floats(joined({n, s.within(1, 3)}, some(s, axes, 1, 5)));
                     return Tensors{grid_sample(x, s.floats(joined(joined({n}, some(s, axes, 1, 4)), {axes})),
                                                {s.choice<GridSampleMode>(), s.choice<GridPadding>(), s.chance(50)})};
                   }});
  calls.push_back({"affine_grid", [](Source& s) {
                     const int64_t axes = s.within(2, 3), n = s.within(0, 2);
                     return Tensors{affine_grid(s.floats({n, axes, axes + 1}),
                                                s.chance(80) ? joined({n, 1}, some(s, int(axes), 1, 5)) : s.sizes(),
                                                s.chance(50))};
                   }});
  const auto columns = [](Source& s) { return ColumnOptions{s.per_axis(2), s.per_axis(2, 0), s.per_axis(2)}; };
  calls.push_back({"im2col", [=](Source& s) {
                     return Tensors{im2col(s.floats(joined(batch(s, 2), some(s, 2))), s.per_axis(2), columns(s))};
                   }});
  calls.push_back({"col2im", [=](Source& s) {
                     return Tensors{col2im(s.floats(joined(batch(s, s.within(1, 12)), some(s, 1, 1, 20))),
                                           s.per_axis(2, 2), s.per_axis(2), columns(s))};
                   }});
}

void add_norms(std::vector<Call>& calls) {
  calls.push_back({"layer_norm", [](Source& s) {
                     const Shape last = some(s, int(s.within(1, 2)), 1, 20);
                     const Tensor x = s.floats(joined(some(s, int(s.within(0, 2))), last)), w = s.maybe(s.floats(last)),
                                  b = s.maybe(s.floats(last));
                     return Tensors{
                         layer_norm(x, s.chance(95) ? last : s.sizes(), w, b, s.chance(80) ? 1e-5 : s.number())};
                   }});
  calls.push_back({"rms_norm", [](Source& s) {
                     const Shape last = some(s, int(s.within(1, 2)), 1, 20);
                     const Tensor x = s.floats(joined(some(s, int(s.within(0, 2))), last)), w = s.maybe(s.floats(last));
                     return Tensors{rms_norm(x, last, w, s.chance(50) ? std::optional<double>() : s.number())};
                   }});
  calls.push_back({"group_norm", [](Source& s) {
                     const int64_t groups = s.within(1, 3), c = groups * s.within(1, 3);
                     const Tensor x = s.floats(joined({s.within(0, 3), c}, some(s, int(s.within(0, 3)), 1, 5)));
                     return Tensors{group_norm(x, s.chance(90) ? groups : s.size(), s.maybe(s.floats({c})),
                                               s.maybe(s.floats({c})))};
                   }});
  for (const bool instance : {false, true})
    calls.push_back({instance ? "instance_norm" : "batch_norm", [instance](Source& s) {
                       const int64_t c = s.within(0, 4);
                       const Tensor x = s.floats(joined({s.within(0, 4), c}, some(s, int(s.within(0, 3)), 1, 5)));
                       const Tensor mean = s.chance(50) ? zeros({c}, {.dtype = x.dtype()}) : Tensor(),
                                    var = mean.defined() ? ones_like(mean) : Tensor();
                       const auto f = instance ? instance_norm : batch_norm;
                       return Tensors{f(x, mean, var, s.maybe(s.floats({c})), s.maybe(s.floats({c})), s.chance(70),
                                        s.chance(80) ? 0.1 : s.number(), s.chance(80) ? 1e-5 : s.number())};
                     }});
  calls.push_back({"local_response_norm", [](Source& s) {
                     return Tensors{local_response_norm(s.floats(some(s, int(s.within(2, 5)), 1, 5)), s.size(),
                                                        s.number(), s.number(), s.number())};
                   }});
  calls.push_back({"normalize", [](Source& s) {
                     return Tensors{normalize(s.tensor(), s.number(), s.axis(), s.chance(80) ? 1e-12 : s.number())};
                   }});
  calls.push_back(
      {"cosine_similarity", [](Source& s) { return Tensors{cosine_similarity(s.tensor(), s.tensor(), s.axis())}; }});
  calls.push_back({"pairwise_distance", [](Source& s) {
                     return Tensors{pairwise_distance(s.tensor(), s.tensor(), s.number(), 1e-6, s.chance(50))};
                   }});
}

void add_attention(std::vector<Call>& calls) {
  calls.push_back({"scaled_dot_product_attention", [](Source& s) {
                     const Shape lead = some(s, int(s.within(0, 2)), 1, 3);
                     const int64_t e = s.one_of(std::vector<int64_t>{1, 3, 4, 8, 16, 32}),
                                   v = s.chance(70) ? e : s.within(0, 20), l = s.within(0, 14), n = s.within(0, 14);
                     const Tensor q = s.floats(joined(lead, {l, e})), k = s.floats(joined(lead, {n, e})),
                                  values = s.floats(joined(lead, {n, v}));
                     AttentionOptions o{.dropout_p = s.chance(80) ? 0 : s.probability(),
                                        .is_causal = s.chance(30),
                                        .enable_gqa = s.chance(10)};
                     if (s.chance(40)) o.attn_mask = s.chance(50) ? s.tensor({l, n}, boolean) : s.floats({l, n});
                     if (s.chance(20)) o.scale = s.number();
                     return Tensors{scaled_dot_product_attention(q, k, values, o)};
                   }});
  calls.push_back({"MultiheadAttention", [](Source& s) {
                     const int64_t heads = s.few(),
                                   e = s.chance(90) ? 4 * std::max<int64_t>(1, std::min<int64_t>(heads, 8)) : s.size();
                     nn::MultiheadAttention mha(e, heads,
                                                {.dropout = s.probability(),
                                                 .bias = s.chance(50),
                                                 .add_bias_kv = s.chance(30),
                                                 .add_zero_attn = s.chance(30),
                                                 .batch_first = s.chance(50)});
                     const Tensor x = s.tensor({s.within(0, 5), s.within(0, 3), e}, f32);
                     nn::MultiheadInput in{
                         .is_causal = s.chance(30), .need_weights = s.chance(50), .average_attn_weights = s.chance(50)};
                     if (s.chance(30)) in.key_padding_mask = s.tensor({x.size(1), x.size(0)}, boolean);
                     if (s.chance(30)) in.attn_mask = s.tensor({x.size(0), x.size(0)}, s.chance(50) ? boolean : f32);
                     return Tensors{mha(x, x, x, in).output};
                   }});
  calls.push_back(
      {"TransformerEncoderLayer", [](Source& s) {
         nn::TransformerEncoderLayer layer(8, s.chance(80) ? 2 : s.size(),
                                           {.dim_feedforward = s.few(),
                                            .dropout = s.probability(),
                                            .activation = s.choice<nn::TransformerActivation>(),
                                            .layer_norm_eps = s.chance(80) ? 1e-5 : s.number(),
                                            .batch_first = s.chance(50),
                                            .norm_first = s.chance(50)});
         return Tensors{layer(s.tensor({s.within(0, 5), s.within(0, 3), 8}, f32), {.is_causal = s.chance(50)})};
       }});
  calls.push_back({"rotary_positions", [](Source& s) {
                     return Tensors{
                         rotary_positions(s.floats(some(s, int(s.within(1, 4)), 1, 8)),
                                          {.offset = s.size(), .base = s.number(), .interleaved = s.chance(50)})};
                   }});
  calls.push_back({"sinusoidal_positions", [](Source& s) {
                     return Tensors{sinusoidal_positions(s.size(), s.size(), s.chance(50) ? 10000 : s.number())};
                   }});
}

template <class L> void add_recurrent(std::vector<Call>& calls, const char* name) {
  calls.push_back(
      {name, [](Source& s) {
         const int64_t in = s.few(), hidden = s.few();
         L layer(in, hidden,
                 {.num_layers = s.few(),
                  .bias = s.chance(50),
                  .batch_first = s.chance(50),
                  .dropout = s.chance(80) ? 0 : s.probability(),
                  .bidirectional = s.chance(40),
                  .proj_size = s.chance(80) ? 0 : s.size(),
                  .nonlinearity = s.choice<nn::Nonlinearity>()});
         const int64_t time = s.within(0, 5), batch = s.within(0, 4);
         const Tensor x = s.tensor(layer.options.batch_first ? Shape{batch, time, in} : Shape{time, batch, in}, f32);
         std::vector<int64_t> lengths;
         if (s.chance(30))
           for (int64_t i = 0; i < batch; ++i) lengths.push_back(s.chance(90) ? s.within(0, time) : s.size());
         const Tensor h = s.chance(30) ? s.tensor({1, batch, hidden}, f32) : Tensor();
         const auto r = layer(x, {.h_0 = h, .lengths = lengths});
         return Tensors{r.output, r.h_n};
       }});
}

void add_lookups(std::vector<Call>& calls) {
  calls.push_back({"Embedding", [](Source& s) {
                     const int64_t rows = s.few();
                     EmbeddingOptions o{.norm_type = s.chance(60) ? 2 : s.number(), .scale_grad_by_freq = s.chance(30)};
                     if (s.chance(40)) o.padding_idx = s.few(-3);
                     if (s.chance(30)) o.max_norm = s.number();
                     nn::Embedding layer(rows, s.few(), o);
                     return Tensors{layer(s.indices(s.shape(), rows))};
                   }});
  calls.push_back({"embedding_bag", [](Source& s) {
                     const int64_t rows = s.within(0, 6);
                     const Tensor w = s.floats({rows, s.within(0, 5)});
                     EmbeddingBagOptions o{.mode = s.choice<BagMode>(),
                                           .norm_type = s.chance(80) ? 2 : s.number(),
                                           .include_last_offset = s.chance(30)};
                     if (s.chance(30)) o.padding_idx = s.few(-2);
                     if (s.chance(30)) o.max_norm = s.number();
                     const bool flat = s.chance(50);
                     const Shape shape = flat ? some(s, 1, 0, 9) : some(s, 2, 0, 5);
                     const Tensor ids = s.indices(shape, rows),
                                  offsets = flat ? s.indices(some(s, 1, 1, 4), 4).sort(-1).values : Tensor();
                     return Tensors{embedding_bag(ids, w, offsets, o, s.chance(20) ? s.floats(shape) : Tensor())};
                   }});
}

void add_activations(std::vector<Call>& calls) {
  const auto add = [&](const char* name, auto make) {
    calls.push_back({name, [make](Source& s) {
                       const auto layer = make(s);
                       return Tensors{layer(s.tensor())};
                     }});
  };
  add("GELU", [](Source& s) { return nn::GELU(s.choice<GeluApproximation>()); });
  add("CELU", [](Source& s) { return nn::CELU(s.number()); });
  add("Softplus", [](Source& s) {
    const double b = s.number();
    return nn::Softplus(b, s.number());
  });
  add("Hardtanh", [](Source& s) {
    const double b = s.number();
    return nn::Hardtanh(b, s.number());
  });
  add("RReLU", [](Source& s) {
    const double b = s.number();
    return nn::RReLU(b, s.number());
  });
  add("PReLU", [](Source& s) { return nn::PReLU(s.few()); });
  add("GLU", [](Source& s) { return nn::GLU(s.axis()); });
  add("Softmin", [](Source& s) { return nn::Softmin(s.axis()); });
  add("Softmax2d", [](Source&) { return nn::Softmax2d(); });
  add("Flatten", [](Source& s) {
    const int64_t a = s.axis();
    return nn::Flatten(a, s.axis());
  });
  add("Unflatten", [](Source& s) {
    const int64_t a = s.axis();
    return nn::Unflatten(a, s.sizes());
  });
  add("PixelShuffle", [](Source& s) { return nn::PixelShuffle(s.size()); });
  add("ChannelShuffle", [](Source& s) { return nn::ChannelShuffle(s.size()); });
  add("PixelUnshuffle", [](Source& s) { return nn::PixelUnshuffle(s.size()); });
  add("ReflectionPad2d", [](Source& s) { return nn::ReflectionPad2d(s.few(-1)); });
  add("ReplicationPad2d", [](Source& s) { return nn::ReplicationPad2d(s.few(-1)); });
  add("CircularPad1d", [](Source& s) { return nn::CircularPad1d(s.few(-1)); });
  add("ZeroPad3d", [](Source& s) { return nn::ZeroPad3d(s.few(-1)); });
  add("Dropout", [](Source& s) { return nn::Dropout(s.probability()); });
  add("Dropout2d", [](Source& s) { return nn::Dropout2d(s.probability()); });
  add("AlphaDropout", [](Source& s) { return nn::AlphaDropout(s.probability()); });
  add("Linear", [](Source& s) {
    const int64_t n = s.few();
    return nn::Linear(n, s.few());
  });
  add("LayerNorm", [](Source& s) { return nn::LayerNorm(s.few()); });
  add("GroupNorm", [](Source& s) {
    const int64_t n = s.few();
    return nn::GroupNorm(n, s.few());
  });
  add("BatchNorm2d", [](Source& s) { return nn::BatchNorm2d(s.few(), {.momentum = s.probability()}); });
  add("InstanceNorm1d", [](Source& s) { return nn::InstanceNorm1d(s.few(), {.track_running_stats = s.chance(50)}); });
  calls.push_back(
      {"bilinear", [](Source& s) {
         const int64_t a = s.within(0, 4), b = s.within(0, 4), n = s.within(0, 4);
         return Tensors{bilinear(s.floats({n, a}), s.floats({n, b}), s.floats({3, a, b}), s.maybe(s.floats({3})))};
       }});
}

}  // namespace

void add_layers(std::vector<Call>& calls) {
  add_conv(calls), add_pools(calls), add_resampling(calls), add_norms(calls), add_attention(calls);
  add_recurrent<nn::RNN>(calls, "RNN"), add_recurrent<nn::LSTM>(calls, "LSTM"), add_recurrent<nn::GRU>(calls, "GRU");
  add_lookups(calls), add_activations(calls);
}

}  // namespace volta::fuzz
