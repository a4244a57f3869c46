// The samples: pointwise ops come from their list, the others are written out.
#include "samples.h"

#include <cmath>
#include <map>

#include "core/device_names.h"
#include "math/elementwise_names.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "toy_device.h"

namespace volta::test {
namespace {

// Where a pointwise op is defined and smooth; [-2, 2] unless listed.
const std::map<std::string, std::vector<std::pair<double, double>>>& ranges() {
  static const std::map<std::string, std::vector<std::pair<double, double>>> table = {
      {"sqrt", {{0.3, 3}}},
      {"rsqrt", {{0.3, 3}}},
      {"reciprocal", {{0.4, 3}}},
      {"log", {{0.2, 3}}},
      {"log2", {{0.2, 3}}},
      {"log10", {{0.2, 3}}},
      {"log1p", {{-0.7, 2}}},
      {"tan", {{-1, 1}}},
      {"asin", {{-0.8, 0.8}}},
      {"acos", {{-0.8, 0.8}}},
      {"acosh", {{1.3, 3}}},
      {"atanh", {{-0.8, 0.8}}},
      {"erfinv", {{-0.8, 0.8}}},
      {"lgamma", {{0.6, 4}}},
      {"digamma", {{0.6, 4}}},
      {"trigamma", {{0.6, 4}}},
      {"polygamma2", {{0.6, 4}}},
      {"logit", {{0.15, 0.85}}},
      {"pow", {{0.3, 2}, {-2, 2}}},
      {"div", {{-2, 2}, {0.5, 2}}},
      {"fmod", {{-3, 3}, {0.71, 1.9}}},
      {"remainder", {{-3, 3}, {0.71, 1.9}}},
      {"floor_divide", {{-3, 3}, {0.71, 1.9}}},
      {"elu", {{-2, 2}, {0.5, 2}}},
      {"celu", {{-2, 2}, {0.5, 2}}},
      {"softplus", {{-2, 2}, {0.5, 2}, {20, 21}}},
      {"hardtanh", {{-2, 2}, {-1.2, -0.8}, {0.8, 1.2}}},
      {"softshrink", {{-2, 2}, {0.2, 0.8}}},
      {"hardshrink", {{-2, 2}, {0.2, 0.8}}},
      {"clamp", {{-2, 2}, {-1.2, -0.8}, {0.8, 1.2}}},
      {"hypot", {{0.3, 2}, {0.3, 2}}},
      {"atan2", {{0.3, 2}, {0.3, 2}}},
      {"xlogy", {{0.3, 2}, {0.3, 2}}},
      {"leaky_relu", {{-2, 2}, {0.01, 0.5}}},
  };
  return table;
}

Sample pointwise_sample(const PointName& name, int index) {
  Sample s{name.name, name.name, {}, {}};
  const auto found = ranges().find(name.name);
  for (int i = 0; i < name.arity; ++i) {
    std::pair<double, double> r{-2, 2};
    if (found != ranges().end() && size_t(i) < found->second.size()) r = found->second[size_t(i)];
    // Operands of different shapes, so that broadcasting is part of every check.
    const Shape shape = i == 0 ? Shape{3, 4} : i == 1 ? Shape{4} : Shape{3, 1};
    s.inputs.push_back(i < name.masks                    ? truths(shape)
                       : name.domain == Domain::integral ? integers(shape, 7)
                                                         : Input{shape, r.first, r.second});
  }
  s.half = name.name != "remainder" && name.name != "fmod" && name.name != "floor_divide";
  const ElementwiseOp& op = point_op(index);
  s.f = [&op](const Tensors& x) {
    const std::vector<Operand> operands(x.begin(), x.end());
    return Tensors{detail::map(op, operands)};
  };
  return s;
}

// A reduction of the list, over all elements, some axes, and one that is kept.
template <class R> void add_reducer(std::vector<Sample>& list, int index) {
  const auto found = ranges().find(R::name);
  const std::pair<double, double> r = found == ranges().end() ? std::pair{-2.0, 2.0} : found->second[0];
  const Input in =
      R::elements == reducers::Elements::truth ? integers({3, 4, 2}, 2) : Input{{3, 4, 2}, r.first, r.second};
  const auto add = [&](const char* which, const Axes& dim, bool keepdim) {
    list.push_back(one(R::name, std::string(R::name) + which, {in},
                       [=](const Tensors& x) { return reduce_over(reduce_op(index), x[0], dim, keepdim); }));
  };
  add(" all", {}, false);
  add(" axes", {0, 2}, false);
  add(" keepdim", -2, true);
}

// Indices in range of an axis of size n, made from the values so that they vary; duplicates included.
Tensor as_index(const Tensor& x, int64_t n) {
  if (!x.defined()) return zeros({4, 5}, {.dtype = i64});
  const NoGrad off;
  return (x.detach().to(f64).abs() * 7).floor().to(i64) % n;
}

void add_reductions(std::vector<Sample>& list) {
  const Input cube{{3, 4, 2}}, matrix{{4, 5}}, positive{{3, 4}, 0.3, 2};
  list.push_back(one("sum", "sum all", {cube}, [](const Tensors& x) { return x[0].sum(); }));
  list.push_back(one("sum", "sum axes", {cube}, [](const Tensors& x) { return x[0].sum({0, 2}); }));
  list.push_back(one("sum", "sum keepdim", {cube}, [](const Tensors& x) { return x[0].sum(-2, true); }));
  list.push_back(one("mean", "mean all", {cube}, [](const Tensors& x) { return x[0].mean(); }));
  list.push_back(one("mean", "mean axis", {cube}, [](const Tensors& x) { return x[0].mean(1); }));
  list.push_back(one("prod", "prod all", {{{2, 3}}}, [](const Tensors& x) { return x[0].prod(); }));
  list.push_back(one("prod", "prod axis", {cube}, [](const Tensors& x) { return x[0].prod(1); }));
  list.push_back(one("amax", "amax", {cube}, [](const Tensors& x) { return x[0].amax({1, 2}); }));
  list.push_back(one("amin", "amin", {cube}, [](const Tensors& x) { return x[0].amin(0, true); }));
  list.push_back(one("max", "max all", {matrix}, [](const Tensors& x) { return x[0].max(); }));
  list.push_back(one("min", "min all", {matrix}, [](const Tensors& x) { return x[0].min(); }));
  list.push_back(one("max", "max axis", {matrix}, [](const Tensors& x) { return x[0].max(1).values; }));
  list.push_back(one("min", "min axis", {matrix}, [](const Tensors& x) { return x[0].min(0, true).values; }));
  const Input other{{5}};
  list.push_back(one("max", "max other", {matrix, other}, [](const Tensors& x) { return x[0].max(x[1]); }));
  list.push_back(one("min", "min other", {matrix, other}, [](const Tensors& x) { return min(x[0], x[1]); }));
  list.push_back(one("dist", "dist", {matrix, other}, [](const Tensors& x) { return x[0].dist(x[1]); }));
  list.push_back(one("dist", "dist 3", {matrix, other}, [](const Tensors& x) { return dist(x[0], x[1], 3); }));
  list.push_back(one("argmax", "argmax", {matrix}, [](const Tensors& x) { return x[0].argmax(1); }));
  list.push_back(one("argmin", "argmin", {matrix}, [](const Tensors& x) { return x[0].argmin(); }));
  list.push_back(
      one("count_nonzero", "count_nonzero", {matrix}, [](const Tensors& x) { return x[0].count_nonzero(1); }));
  list.push_back(one("var", "var", {matrix}, [](const Tensors& x) { return x[0].var(1); }));
  list.push_back(
      one("var", "var all biased", {matrix}, [](const Tensors& x) { return x[0].var({}, {.correction = 0}); }));
  list.push_back(one("std_dev", "std", {matrix}, [](const Tensors& x) { return x[0].std(0, {.keepdim = true}); }));
  for (double p : {0.0, 1.0, 2.0, 3.0, 2.5, double(INFINITY), -double(INFINITY)})
    list.push_back({
        "norm",
        "norm " + std::to_string(p),
        [p](const Tensors& x) { return Tensors{x[0].norm(p, 1)}; },
        {positive},
    });
  list.push_back(one("median", "median all", {matrix}, [](const Tensors& x) { return x[0].median(); }));
  list.push_back(one("median", "median axis", {matrix}, [](const Tensors& x) { return x[0].median(1).values; }));
  list.push_back(one("mode", "mode", {matrix}, [](const Tensors& x) { return x[0].mode().values; }));
  const auto with_nan = [](const Tensor& t) {
    return t.defined() && is_floating(t.dtype()) ? where(t.detach() > 1.5, double(NAN), t) : t;
  };
  list.push_back(one("nanmean", "nanmean", {cube}, [=](const Tensors& x) { return with_nan(x[0]).nanmean({0, 2}); }));
  list.push_back(
      one("nanmedian", "nanmedian all", {matrix}, [=](const Tensors& x) { return with_nan(x[0]).nanmedian(); }));
  list.push_back(one("nanmedian", "nanmedian axis", {matrix},
                     [=](const Tensors& x) { return with_nan(x[0]).nanmedian(0).values; }));
  for (const char* between : {"linear", "lower", "higher", "nearest", "midpoint"})
    list.push_back(
        {"quantile",
         std::string("quantile ") + between,
         [between](const Tensors& x) {
           return Tensors{x[0].quantile(beside(x[0], tensor({0.1, 0.55, 1.0})), 1, true, {.interpolation = between})};
         },
         {cube},
         std::string(between) == "linear"});
  list.push_back(
      one("nanquantile", "nanquantile", {matrix}, [=](const Tensors& x) { return with_nan(x[0]).nanquantile(0.3); }));
  list.push_back({
      "aminmax",
      "aminmax",
      [](const Tensors& x) {
        const auto [low, high] = x[0].aminmax(1);
        return Tensors{low, high};
      },
      {cube},
  });
  list.push_back({
      "var_mean",
      "var_mean",
      [](const Tensors& x) {
        const auto [v, m] = var_mean(x[0], 1);
        return Tensors{v, m};
      },
      {matrix},
  });
  list.push_back({
      "std_mean",
      "std_mean",
      [](const Tensors& x) {
        const auto [s, m] = std_mean(x[0], {}, {.correction = 0});
        return Tensors{s, m};
      },
      {matrix},
  });
  list.push_back(one("cov", "cov", {matrix}, [](const Tensors& x) { return x[0].cov({.correction = 0}); }));
  list.push_back(one("corrcoef", "corrcoef", {matrix}, [](const Tensors& x) { return x[0].corrcoef(); }));
  list.push_back(
      one("trapezoid", "trapezoid", {matrix, optional({5})}, [](const Tensors& x) { return trapezoid(x[0], x[1]); }));
  list.push_back(one("cumulative_trapezoid", "cumulative_trapezoid", {matrix},
                     [](const Tensors& x) { return cumulative_trapezoid(x[0], {}, {.dx = 0.5, .dim = 0}); }));
  list.push_back(one("softmax", "softmax last", {cube}, [](const Tensors& x) { return x[0].softmax(-1); }));
  list.push_back(one("softmax", "softmax first", {cube}, [](const Tensors& x) { return x[0].softmax(0); }));
  list.push_back(one("log_softmax", "log_softmax last", {cube}, [](const Tensors& x) { return x[0].log_softmax(-1); }));
  list.push_back(
      one("log_softmax", "log_softmax middle", {cube}, [](const Tensors& x) { return x[0].log_softmax(1); }));
  list.push_back(one("renorm", "renorm", {cube}, [](const Tensors& x) { return x[0].renorm(3, 1, 1.5); }));
  list.push_back(one("cumsum", "cumsum", {cube}, [](const Tensors& x) { return x[0].cumsum(1); }));
  list.push_back(one("cumprod", "cumprod", {cube}, [](const Tensors& x) { return x[0].cumprod(1); }));
  list.push_back(one("cummax", "cummax", {matrix}, [](const Tensors& x) { return x[0].cummax(1).values; }));
  list.push_back(one("cummin", "cummin", {matrix}, [](const Tensors& x) { return x[0].cummin(0).values; }));
  list.push_back(one("logcumsumexp", "logcumsumexp", {matrix}, [](const Tensors& x) { return x[0].logcumsumexp(1); }));
  list.push_back(one("diff", "diff", {matrix}, [](const Tensors& x) { return x[0].diff(2, 1); }));
}

void add_linear(std::vector<Sample>& list) {
  const Input a{{3, 4}}, b{{4, 2}}, v{{4}}, batch_a{{2, 1, 3, 4}}, batch_b{{5, 4, 2}};
  const auto product = [](const Tensors& x) { return x[0].matmul(x[1]); };
  list.push_back(one("matmul", "matmul 2x2", {a, b}, product));
  list.push_back(one("matmul", "matmul 1x1", {v, v}, product));
  list.push_back(one("matmul", "matmul 1x2", {v, b}, product));
  list.push_back(one("matmul", "matmul 2x1", {a, v}, product));
  list.push_back(one("matmul", "matmul batches", {batch_a, batch_b}, product));
  list.push_back(one("matmul", "matmul batch by matrix", {{{2, 3, 4}}, b}, product));
  list.push_back(one("matmul", "matmul matrix by batch", {a, batch_b}, product));
  list.push_back(one("matmul", "matmul batch by vector", {{{2, 3, 4}}, v}, product));
  list.push_back(one("mm", "mm", {a, b}, [](const Tensors& x) { return x[0].mm(x[1]); }));
  list.push_back(one("bmm", "bmm", {{{2, 3, 4}}, {{2, 4, 2}}}, [](const Tensors& x) { return x[0].bmm(x[1]); }));
  list.push_back(one("mv", "mv", {a, v}, [](const Tensors& x) { return x[0].mv(x[1]); }));
  list.push_back(one("dot", "dot", {v, v}, [](const Tensors& x) { return x[0].dot(x[1]); }));
  list.push_back(one("outer", "outer", {v, {{3}}}, [](const Tensors& x) { return x[0].outer(x[1]); }));
  list.push_back(one("addmm", "addmm", {{{2}}, a, b}, [](const Tensors& x) { return x[0].addmm(x[1], x[2], 3, 2); }));
  list.push_back(one("baddbmm", "baddbmm", {{{3, 1}}, {{2, 3, 4}}, {{2, 4, 2}}},
                     [](const Tensors& x) { return x[0].baddbmm(x[1], x[2], 3, 2); }));
  list.push_back(one("addbmm", "addbmm", {{{3, 2}}, {{2, 3, 4}}, {{2, 4, 2}}},
                     [](const Tensors& x) { return x[0].addbmm(x[1], x[2], 3, 2); }));
  list.push_back(one("addmv", "addmv", {{{3}}, a, v}, [](const Tensors& x) { return x[0].addmv(x[1], x[2], 3, 2); }));
  list.push_back(one("addr", "addr", {{{4, 3}}, v, {{3}}}, [](const Tensors& x) { return x[0].addr(x[1], x[2]); }));
  list.push_back(one("cdist", "cdist", {{{2, 3, 4}}, {{5, 4}}}, [](const Tensors& x) { return cdist(x[0], x[1]); }));
  list.push_back(one("cdist", "cdist 3", {a, {{5, 4}}}, [](const Tensors& x) { return cdist(x[0], x[1], 3); }));
  list.push_back(one("pdist", "pdist", {{{4, 3}}}, [](const Tensors& x) { return pdist(x[0]); }));
  list.push_back(one("vander", "vander", {v}, [](const Tensors& x) { return vander(x[0], 3); }));
  for (const char* activation : {"none", "relu", "gelu", "gelu_tanh", "silu", "tanh", "sigmoid"})
    list.push_back({
        "linear",
        std::string("linear ") + activation,
        [activation](const Tensors& x) { return Tensors{linear(x[0], x[1], x[2], {.activation = activation})}; },
        {{{2, 3, 4}}, {{5, 4}}, optional({5})},
    });
  list.push_back(
      one("linear", "linear without bias", {a, {{5, 4}}}, [](const Tensors& x) { return linear(x[0], x[1]); }));
  list.push_back(one("inner", "inner", {{{2, 3, 4}}, {{5, 4}}}, [](const Tensors& x) { return x[0].inner(x[1]); }));
  list.push_back(one("inner", "inner 0-d", {{{2, 3}}, {{}}}, [](const Tensors& x) { return inner(x[0], x[1]); }));
  list.push_back(one("tensordot", "tensordot axes", {{{2, 3, 4}}, {{4, 3, 2}}}, [](const Tensors& x) {
    return tensordot(x[0], x[1], {1, 2}, {1, 0});
  }));
  list.push_back(
      one("tensordot", "tensordot count", {a, b}, [](const Tensors& x) { return tensordot(x[0], x[1], 1); }));
  list.push_back(one("kron", "kron", {{{2, 3}}, {{2, 2}}}, [](const Tensors& x) { return x[0].kron(x[1]); }));
  list.push_back(one("trace", "trace", {{{3, 4}}}, [](const Tensors& x) { return x[0].trace(); }));
  list.push_back(one("cross", "cross", {{{2, 3}}, {{2, 3}}}, [](const Tensors& x) { return x[0].cross(x[1]); }));
  list.push_back(
      one("einsum", "einsum product", {a, b}, [](const Tensors& x) { return einsum("ij,jk->ki", x[0], x[1]); }));
  list.push_back(one("einsum", "einsum batch", {{{2, 3, 4}}, {{2, 4, 2}}},
                     [](const Tensors& x) { return einsum("bij,bjk->bik", x[0], x[1]); }));
  list.push_back(one("einsum", "einsum trace", {{{3, 3}}}, [](const Tensors& x) { return einsum("ii->", x[0]); }));
  list.push_back(one("einsum", "einsum ellipsis", {{{2, 3, 4}}, b},
                     [](const Tensors& x) { return einsum("...ij,jk->...ik", x[0], x[1]); }));
}

void add_indices(std::vector<Sample>& list) {
  const Input matrix{{4, 5}}, same{{4, 5}}, vector{{6}};
  list.push_back(
      one("gather", "gather", {matrix, integers({3, 5}, 4)}, [](const Tensors& x) { return x[0].gather(0, x[1]); }));
  list.push_back(one("scatter", "scatter", {matrix, {{2, 5}}}, [](const Tensors& x) {
    return x[0].scatter(0, beside(x[0], tensor({{0, 1, 2, 3, 0}, {1, 2, 3, 0, 1}})), x[1]);
  }));
  list.push_back(one("scatter", "scatter number", {matrix},
                     [](const Tensors& x) { return x[0].scatter(1, as_index(x[0], 5), 1); }));
  list.push_back(one("scatter_add", "scatter_add", {matrix, same},
                     [](const Tensors& x) { return x[0].scatter_add(1, as_index(x[1], 5), x[1]); }));
  for (const char* how : {"sum", "prod", "mean", "amax", "amin"})
    list.push_back({
        "scatter_reduce",
        std::string("scatter_reduce ") + how,
        [how](const Tensors& x) { return Tensors{x[0].scatter_reduce(1, as_index(x[1], 5), x[1], how)}; },
        {matrix, {{4, 3}, 0.5, 2}},
        true,
        std::string(how) == "mean" ? Takes::numeric : Takes::by_group,
    });
  list.push_back(one("index_select", "index_select", {matrix}, [](const Tensors& x) {
    return x[0].index_select(1, beside(x[0], tensor({4, 0, 0, 3})));
  }));
  list.push_back(one("index_add", "index_add", {matrix, {{3, 5}}}, [](const Tensors& x) {
    return x[0].index_add(0, beside(x[0], tensor({2, 0, 2})), x[1], 3);
  }));
  list.push_back(one("index_copy", "index_copy", {matrix, {{2, 5}}}, [](const Tensors& x) {
    return x[0].index_copy(0, beside(x[0], tensor({2, 0})), x[1]);
  }));
  for (const char* how : {"sum", "prod", "mean", "amax", "amin"})
    list.push_back({
        "index_reduce",
        std::string("index_reduce ") + how,
        [how](const Tensors& x) {
          return Tensors{x[0].index_reduce(1, beside(x[0], tensor({2, 0, 2})), x[1], how)};
        },
        {matrix, {{4, 3}, 0.5, 2}},
        true,
        std::string(how) == "mean" ? Takes::numeric : Takes::by_group,
    });
  list.push_back(one("index_fill", "index_fill", {matrix, {{}}}, [](const Tensors& x) {
    return x[0].index_fill(1, beside(x[0], tensor({2, -1})), x[1]);
  }));
  for (bool accumulate : {false, true})
    list.push_back({
        "index_put",
        accumulate ? "index_put accumulate" : "index_put",
        [accumulate](const Tensors& x) {
          const Tensor i = beside(x[0], tensor({0, 3, accumulate ? 0 : 2}));
          return Tensors{x[0].index_put({i}, x[1], accumulate)};
        },
        {matrix, {{3, 5}}},
    });
  list.push_back(one("masked_scatter", "masked_scatter", {matrix, {{3, 4}}}, [](const Tensors& x) {
    return x[0].masked_scatter(beside(x[0], eye(4, 5, {.dtype = boolean})), x[1]);
  }));
  list.push_back(one("index", "in-place forms", {matrix, same}, [](const Tensors& x) {
    const Tensor i = beside(x[0], tensor({2, 0})), rows = x[1].narrow(0, 0, 2);
    Tensor y = x[0] * 2;
    y.index_add_(0, i, rows, 0.5).index_copy_(0, i, rows * y.narrow(0, 1, 2).clone()).index_fill_(1, i, 0.5);
    y.scatter_(0, i.unsqueeze(1), rows.narrow(1, 0, 1)).scatter_add_(1, as_index(x[1], 5), x[1]);
    y.scatter_reduce_(1, as_index(x[0], 5), x[1] * x[1] + 1, "prod").index_reduce_(0, i, rows, "amax");
    y.masked_scatter_(beside(x[0], eye(4, 5, {.dtype = boolean})), x[1]).index_put_({i}, rows, true);
    return y * x[0];
  }));
  list.push_back(one("take", "take", {matrix}, [](const Tensors& x) {
    return x[0].take(beside(x[0], tensor({{0, 19}, {7, 7}})));
  }));
  list.push_back(one("take_along_dim", "take_along_dim", {matrix, integers({4, 2}, 5)},
                     [](const Tensors& x) { return x[0].take_along_dim(x[1], 1); }));
  list.push_back(one("masked_fill", "masked_fill", {matrix}, [](const Tensors& x) {
    return x[0].masked_fill(beside(x[0], eye(4, 5, {.dtype = boolean})), 3);
  }));
  list.push_back(one("masked_select", "masked_select", {matrix},
                     [](const Tensors& x) { return x[0].masked_select(beside(x[0], eye(4, 5, {.dtype = boolean}))); }));
  list.push_back(one("nonzero", "nonzero", {integers({4, 5}, 2)}, [](const Tensors& x) { return x[0].nonzero(); }));
  list.push_back(one("argwhere", "argwhere", {integers({4, 5}, 2)}, [](const Tensors& x) { return x[0].argwhere(); }));
  list.push_back(
      one("isin", "isin", {integers({4, 5}, 9), integers({6}, 9)}, [](const Tensors& x) { return isin(x[0], x[1]); }));
  list.push_back(one("unique_consecutive", "unique_consecutive", {integers({6}, 2)},
                     [](const Tensors& x) { return x[0].unique_consecutive().values; }));
  list.push_back(one("unique", "unique slices", {integers({4, 3}, 2)},
                     [](const Tensors& x) { return x[0].unique({.dim = 0}).values; }));
  list.push_back(one("one_hot", "one_hot", {integers({6}, 4)}, [](const Tensors& x) { return one_hot(x[0], 4); }));
  list.push_back(one("embedding", "embedding", {integers({2, 3}, 4), matrix},
                     [](const Tensors& x) { return embedding(x[0], x[1]); }));
  list.push_back(one("sort", "sort", {matrix}, [](const Tensors& x) { return x[0].sort(0).values; }));
  list.push_back(one("sort", "sort descending", {matrix}, [](const Tensors& x) { return x[0].sort(1, true).values; }));
  list.push_back(one("msort", "msort", {matrix}, [](const Tensors& x) { return x[0].msort(); }));
  list.push_back(one("argsort", "argsort", {matrix}, [](const Tensors& x) { return x[0].argsort(1); }));
  list.push_back(one("topk", "topk", {matrix}, [](const Tensors& x) { return x[0].topk(2).values; }));
  list.push_back(
      one("topk", "topk smallest", {matrix}, [](const Tensors& x) { return x[0].topk(3, 0, false).values; }));
  list.push_back(one("kthvalue", "kthvalue", {matrix}, [](const Tensors& x) { return x[0].kthvalue(2, 1).values; }));
  list.push_back(one("unique", "unique", {integers({6}, 4)}, [](const Tensors& x) { return x[0].unique().values; }));
  list.push_back(one("searchsorted", "searchsorted", {vector, matrix}, [](const Tensors& x) {
    return searchsorted(x[0].defined() ? x[0].sort().values.detach() : x[0], x[1]);
  }));
  list.push_back(one("bucketize", "bucketize", {matrix}, [](const Tensors& x) {
    return x[0].bucketize(beside(x[0], tensor({-1.0, 0.0, 1.0})));
  }));
  list.push_back(
      one("bincount", "bincount", {integers({6}, 4)}, [](const Tensors& x) { return x[0].bincount({}, 5); }));
  list.push_back(one("histogram", "histogram", {matrix}, [](const Tensors& x) {
    return x[0].histogram(4, std::pair{-2.0, 2.0}).counts;
  }));
  list.push_back(one("histc", "histc", {matrix}, [](const Tensors& x) { return x[0].histc(4, -2, 2); }));
  list.push_back({
      "unravel_index",
      "unravel_index",
      [](const Tensors& x) {
        return unravel_index(x[0], {2, 3, 4});
      },
      {integers({5}, 24)},
  });
  list.push_back(
      one("polygamma", "polygamma", {{{3, 4}, 0.6, 4}}, [](const Tensors& x) { return polygamma(3, x[0]); }));
  list.push_back(
      one("addcmul", "addcmul", {matrix, same, {{5}}}, [](const Tensors& x) { return x[0].addcmul(x[1], x[2], 3); }));
  list.push_back(
      one("addcmul", "addcmul 1", {matrix, same, {{5}}}, [](const Tensors& x) { return addcmul(x[0], x[1], x[2]); }));
  list.push_back(one("addcdiv", "addcdiv", {matrix, same, {{5}, 0.5, 2}},
                     [](const Tensors& x) { return x[0].addcdiv(x[1], x[2], 2); }));
  list.push_back(one("add", "add scaled", {matrix, {{5}}}, [](const Tensors& x) { return x[0].add(x[1], 2); }));
  list.push_back(one("sub", "sub scaled", {matrix, {{5}}}, [](const Tensors& x) { return x[0].sub(x[1], 2); }));
  list.push_back(one("clamp", "clamp above", {matrix, {{5}}}, [](const Tensors& x) { return x[0].clamp(x[1]); }));
  list.push_back(
      one("clamp", "clamp below", {matrix, {{5}}}, [](const Tensors& x) { return x[0].clamp({.max = x[1]}); }));
  list.push_back({"float_power",
                  "float_power",
                  [](const Tensors& x) { return Tensors{x[0].float_power(x[1])}; },
                  {{{4, 5}, 0.3, 2}, {{5}}},
                  false});  // never a half
  list.push_back(one("isposinf", "isposinf", {matrix}, [](const Tensors& x) { return x[0].isposinf(); }));
  list.push_back(one("isneginf", "isneginf", {matrix}, [](const Tensors& x) { return x[0].isneginf(); }));
  list.push_back(
      one("is_nonzero", "is_nonzero", {{{1, 1}}}, [](const Tensors& x) { return full({}, x[0].is_nonzero()); }));
  list.push_back(one("nan_to_num", "nan_to_num", {matrix}, [](const Tensors& x) { return x[0].nan_to_num(); }));
  list.push_back(
      one("isclose", "isclose", {matrix, same}, [](const Tensors& x) { return x[0].isclose(x[1], {.atol = 1}); }));
  list.push_back(one("allclose", "allclose", {matrix}, [](const Tensors& x) { return full({}, x[0].allclose(x[0])); }));
  list.push_back(one("equal", "equal", {matrix}, [](const Tensors& x) { return full({}, x[0].equal(x[0])); }));
  list.push_back(one("index", "index slices", {matrix}, [](const Tensors& x) {
    return Tensor(x[0][{slice({}, {}, -1), 2}]);
  }));
  list.push_back(one("index", "index tensor", {matrix}, [](const Tensors& x) {
    return Tensor(x[0][{beside(x[0], tensor({3, 0, 3})), beside(x[0], tensor({1, 1, 4}))}]);
  }));
  list.push_back(one("index", "index mask", {matrix},
                     [](const Tensors& x) { return Tensor(x[0][beside(x[0], eye(4, 5, {.dtype = boolean}))]); }));
  list.push_back(one("index", "assign", {matrix, {{5}}}, [](const Tensors& x) {
    Tensor y = x[0] * 2;
    y[1] = x[1];
    y[{slice(2, 4), 0}] *= 3;
    return y * x[0];
  }));
}

}  // namespace

const std::vector<Sample>& samples() {
  static const std::vector<Sample> list = [] {
    std::vector<Sample> all;
    std::map<std::string, std::pair<Takes, Grad>> declared;
    int index = 0;
    for_each_point_name([&](const PointName& name) {
      all.push_back(pointwise_sample(name, index++));
      declared[name.name] = {takes_of(name.domain), name.differentiable && !name.truth ? Grad::any : Grad::no};
    });
    for_each_function([&](const Function& f, const std::string& name, const std::string&) {
      declared.try_emplace(name, f.takes(), f.also.grad);  // other forms of an op take what its first does
    });
    for_each(reducers::Named{}, [&]<class R>(int i) {
      add_reducer<R>(all, i);
      declared[R::name] = {takes_of(R::elements), reducers::Differentiable<R> ? Grad::any : Grad::no};
    });
    add_reductions(all);
    add_linear(all);
    add_views(all);
    add_shapes(all);
    add_indices(all);
    add_layers(all);
    add_losses(all);
    for (Sample& s : all)
      if (const auto found = declared.find(s.op); found != declared.end()) {
        if (s.takes == Takes::by_group) s.takes = found->second.first;
        s.differentiable = found->second.second == Grad::any;
      }
    return all;
  }();
  return list;
}

Tensors draw(const Sample& sample, DType dtype, Device device, bool requires_grad) {
  Generator generator(std::hash<std::string>()(sample.label));
  Tensors inputs;
  for (const Input& in : sample.inputs) {
    Tensor x = uniform(in.shape, in.low, in.high, {.dtype = f64, .generator = &generator});
    if (in.draw == Draw::integers) x = x.floor().to(i64);
    x = (in.draw == Draw::truths ? x > 0.3 : in.draw == Draw::values ? x.to(dtype) : x).to(device);
    if (requires_grad && in.draw == Draw::values) x.requires_grad_();
    inputs.push_back(x);
  }
  return inputs;
}

std::vector<Device> devices() {
  std::vector<Device> list{Device()};
  if (cuda::is_available()) list.emplace_back("cuda");
  return list;
}
std::vector<Device> all_devices() {
  std::vector<Device> list = devices();
#if !defined(__SANITIZE_ADDRESS__)  // the toy's loops are the CPU's: for memory, those of the CPU are enough
  (void)toy_device();               // registers itself
#endif
  for (int type = int(DeviceType::cuda) + 1; type < device_type_count(); ++type) list.emplace_back(DeviceType(type));
  return list;
}

}  // namespace volta::test
