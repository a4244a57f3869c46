// How the ops that are not pointwise are called with the oracle's arguments.
#pragma once
#include "oracle/calls_further.h"
#include "oracle/given.h"

namespace volta::oracle {

inline void add_reductions(Calls& calls) {
  using Over = Tensor (*)(const Tensor&, const Axes&, bool);
  const std::map<std::string, Over> over_axes = {{"sum", sum},       {"mean", mean}, {"prod", prod},
                                                 {"nansum", nansum}, {"amax", amax}, {"amin", amin},
                                                 {"any", any},       {"all", all},   {"logsumexp", logsumexp}};
  for (const auto& [name, f] : over_axes)
    calls[name] = [f = f](const Given& g, const Args& a) {
      return Tensors{f(g.x[0], a.axes("dim"), a.flag("keepdim"))};
    };
  const auto values_or_all = [](auto all_of, auto along) {
    return [=](const Given& g, const Args& a) {
      return a.has("dim") ? both(along(g.x[0], a.whole("dim", 0), a.flag("keepdim"))) : Tensors{all_of(g.x[0])};
    };
  };
  calls["max"] = values_or_all([](const Tensor& x) { return x.max(); },
                               [](const Tensor& x, int64_t d, bool k) { return x.max(d, k); });
  calls["min"] = values_or_all([](const Tensor& x) { return x.min(); },
                               [](const Tensor& x, int64_t d, bool k) { return x.min(d, k); });
  calls["median"] = values_or_all([](const Tensor& x) { return x.median(); },
                                  [](const Tensor& x, int64_t d, bool k) { return x.median(d, k); });
  calls["argmax"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].argmax(a.maybe("dim"), a.flag("keepdim"))};
  };
  calls["argmin"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].argmin(a.maybe("dim"), a.flag("keepdim"))};
  };
  calls["count_nonzero"] = [](const Given& g, const Args& a) { return Tensors{g.x[0].count_nonzero(a.axes("dim"))}; };
  calls["var"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].var(a.axes("dim"), {.correction = a.number("correction", 1), .keepdim = a.flag("keepdim")})};
  };
  calls["std_dev"] = [](const Given& g, const Args& a) {
    return Tensors{
        std_dev(g.x[0], a.axes("dim"), {.correction = a.number("correction", 1), .keepdim = a.flag("keepdim")})};
  };
  calls["norm"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].norm(a.number("p", 2), a.axes("dim"), a.flag("keepdim"))};
  };
}

inline void add_rows_and_scans(Calls& calls) {
  using Along = Tensor (*)(const Tensor&, int64_t);
  const std::map<std::string, Along> along = {{"softmax", softmax},
                                              {"log_softmax", log_softmax},
                                              {"cumsum", cumsum},
                                              {"cumprod", cumprod},
                                              {"logcumsumexp", logcumsumexp}};
  for (const auto& [name, f] : along)
    calls[name] = [f = f](const Given& g, const Args& a) { return Tensors{f(g.x[0], a.whole("dim", 0))}; };
  calls["cummax"] = [](const Given& g, const Args& a) { return both(g.x[0].cummax(a.whole("dim", 0))); };
  calls["cummin"] = [](const Given& g, const Args& a) { return both(g.x[0].cummin(a.whole("dim", 0))); };
  calls["diff"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].diff(a.whole("n", 1), a.whole("dim", -1))};
  };
}

inline void add_linear(Calls& calls) {
  using Two = Tensor (*)(const Tensor&, const Tensor&);
  const std::map<std::string, Two> two = {{"matmul", matmul}, {"mm", mm},       {"bmm", bmm},  {"mv", mv},
                                          {"dot", dot},       {"outer", outer}, {"kron", kron}};
  for (const auto& [name, f] : two)
    calls[name] = [f = f](const Given& g, const Args&) { return Tensors{f(g.x[0], g.x[1])}; };
  calls["addmm"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].addmm(g.x[1], g.x[2], a.number("beta", 1), a.number("alpha", 1))};
  };
  calls["linear"] = [](const Given& g, const Args& a) {
    return Tensors{linear(g.x[0], g.x[1], g.x.size() > 2 ? g.x[2] : Tensor(), {.activation = a.text("activation")})};
  };
  calls["tensordot"] = [](const Given& g, const Args& a) {
    return Tensors{a.has("dims") ? tensordot(g.x[0], g.x[1], a.whole("dims", 0))
                                 : tensordot(g.x[0], g.x[1], a.list("dims_x"), a.list("dims_other"))};
  };
  calls["trace"] = [](const Given& g, const Args&) { return Tensors{g.x[0].trace()}; };
  calls["cross"] = [](const Given& g, const Args& a) { return Tensors{g.x[0].cross(g.x[1], a.whole("dim", -1))}; };
  calls["einsum"] = [](const Given& g, const Args& a) { return Tensors{einsum(a.text("equation"), g.x)}; };
}

inline void add_views(Calls& calls) {
  calls["reshape"] = [](const Given& g, const Args& a) { return Tensors{g.x[0].reshape(a.shape("shape"))}; };
  calls["view"] = [](const Given& g, const Args& a) { return Tensors{g.x[0].contiguous().view(a.shape("shape"))}; };
  calls["permute"] = [](const Given& g, const Args& a) { return Tensors{g.x[0].permute(a.shape("dims"))}; };
  calls["transpose"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].transpose(a.list("dims")[0], a.list("dims")[1])};
  };
  calls["t"] = [](const Given& g, const Args&) { return Tensors{g.x[0].t()}; };
  calls["mT"] = [](const Given& g, const Args&) { return Tensors{g.x[0].mT()}; };
  calls["movedim"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].movedim(a.axes("source"), a.axes("destination"))};
  };
  calls["expand"] = [](const Given& g, const Args& a) { return Tensors{g.x[0].expand(a.shape("shape"))}; };
  calls["expand_as"] = [](const Given& g, const Args&) { return Tensors{g.x[0].expand_as(g.x[1])}; };
  calls["broadcast_to"] = [](const Given& g, const Args& a) { return Tensors{g.x[0].broadcast_to(a.shape("shape"))}; };
  calls["squeeze"] = [](const Given& g, const Args& a) { return Tensors{g.x[0].squeeze(a.axes("dim"))}; };
  calls["unsqueeze"] = [](const Given& g, const Args& a) { return Tensors{g.x[0].unsqueeze(a.whole("dim", 0))}; };
  calls["flatten"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].flatten(a.whole("start", 0), a.whole("end", -1))};
  };
  calls["unflatten"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].unflatten(a.whole("dim", 0), a.shape("sizes"))};
  };
  calls["narrow"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].narrow(a.whole("dim", 0), a.whole("start", 0), a.whole("length", 0))};
  };
  calls["slice"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].slice(a.whole("dim", 0), a.maybe("begin"), a.maybe("end"), a.whole("step", 1))};
  };
  calls["select"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].select(a.whole("dim", 0), a.whole("index", 0))};
  };
  calls["flip"] = [](const Given& g, const Args& a) { return Tensors{g.x[0].flip(a.axes("dims"))}; };
  calls["diagonal"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].diagonal(a.whole("offset", 0), a.whole("dim1", 0), a.whole("dim2", 1))};
  };
  calls["unfold"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].unfold(a.whole("dim", 0), a.whole("size", 0), a.whole("step", 1))};
  };
  calls["as_strided"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].clone().contiguous().as_strided(a.shape("size"), a.shape("stride"), a.whole("offset", 0))};
  };
  calls["split"] = [](const Given& g, const Args& a) {
    return a.has("size") ? g.x[0].split(a.whole("size", 1), a.whole("dim", 0))
                         : g.x[0].split(a.list("sizes"), a.whole("dim", 0));
  };
  calls["chunk"] = [](const Given& g, const Args& a) { return g.x[0].chunk(a.whole("chunks", 1), a.whole("dim", 0)); };
  calls["unbind"] = [](const Given& g, const Args& a) { return g.x[0].unbind(a.whole("dim", 0)); };
}

inline void add_shapes(Calls& calls) {
  calls["contiguous"] = [](const Given& g, const Args&) { return Tensors{g.x[0].contiguous()}; };
  calls["clone"] = [](const Given& g, const Args&) { return Tensors{g.x[0].clone()}; };
  calls["to"] = [](const Given& g, const Args& a) { return Tensors{g.x[0].to(dtype_named(a.text("dtype")))}; };
  calls["cat"] = [](const Given& g, const Args& a) { return Tensors{cat(g.x, a.whole("dim", 0))}; };
  calls["stack"] = [](const Given& g, const Args& a) { return Tensors{stack(g.x, a.whole("dim", 0))}; };
  calls["roll"] = [](const Given& g, const Args& a) { return Tensors{g.x[0].roll(a.axes("shifts"), a.axes("dims"))}; };
  calls["tile"] = [](const Given& g, const Args& a) { return Tensors{g.x[0].tile(a.shape("dims"))}; };
  calls["repeat"] = [](const Given& g, const Args& a) { return Tensors{g.x[0].repeat(a.shape("sizes"))}; };
  calls["repeat_interleave"] = [](const Given& g, const Args& a) {
    return Tensors{g.x.size() > 1 ? g.x[0].repeat_interleave(g.x[1], a.maybe("dim"))
                                  : g.x[0].repeat_interleave(a.whole("repeats", 1), a.maybe("dim"))};
  };
  calls["pad"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].pad(a.list("pad"), {.mode = a.text("mode"), .value = a.number("value", 0)})};
  };
  calls["tril"] = [](const Given& g, const Args& a) { return Tensors{g.x[0].tril(a.whole("diagonal", 0))}; };
  calls["triu"] = [](const Given& g, const Args& a) { return Tensors{g.x[0].triu(a.whole("diagonal", 0))}; };
  calls["diag"] = [](const Given& g, const Args& a) { return Tensors{g.x[0].diag(a.whole("diagonal", 0))}; };
}

inline void add_picks(Calls& calls) {
  calls["gather"] = [](const Given& g, const Args& a) { return Tensors{g.x[0].gather(a.whole("dim", 0), g.x[1])}; };
  calls["scatter"] = [](const Given& g, const Args& a) {
    return Tensors{g.numbers.empty() ? g.x[0].scatter(a.whole("dim", 0), g.x[1], g.x[2])
                                     : g.x[0].scatter(a.whole("dim", 0), g.x[1], g.numbers[0])};
  };
  calls["scatter_add"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].scatter_add(a.whole("dim", 0), g.x[1], g.x[2])};
  };
  calls["scatter_reduce"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].scatter_reduce(a.whole("dim", 0), g.x[1], g.x[2], a.text("reduce"), a.flag("include_self"))};
  };
  calls["index_select"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].index_select(a.whole("dim", 0), g.x[1])};
  };
  calls["index_add"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].index_add(a.whole("dim", 0), g.x[1], g.x[2], a.number("alpha", 1))};
  };
  calls["take"] = [](const Given& g, const Args&) { return Tensors{g.x[0].take(g.x[1])}; };
  calls["take_along_dim"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].take_along_dim(g.x[1], a.maybe("dim"))};
  };
  calls["masked_fill"] = [](const Given& g, const Args&) { return Tensors{g.x[0].masked_fill(g.x[1], g.numbers[0])}; };
  calls["masked_select"] = [](const Given& g, const Args&) { return Tensors{g.x[0].masked_select(g.x[1])}; };
  calls["nonzero"] = [](const Given& g, const Args&) { return Tensors{g.x[0].nonzero()}; };
  calls["one_hot"] = [](const Given& g, const Args& a) { return Tensors{one_hot(g.x[0], a.whole("classes", -1))}; };
  calls["embedding"] = [](const Given& g, const Args&) { return Tensors{embedding(g.x[1], g.x[0])}; };
}

inline void add_orders(Calls& calls) {
  calls["sort"] = [](const Given& g, const Args& a) {
    return both(g.x[0].sort(a.whole("dim", -1), a.flag("descending")));
  };
  calls["argsort"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].argsort(a.whole("dim", -1), a.flag("descending"))};
  };
  calls["topk"] = [](const Given& g, const Args& a) {
    return both(g.x[0].topk(a.whole("k", 1), a.whole("dim", -1), a.flag("largest")));
  };
  calls["kthvalue"] = [](const Given& g, const Args& a) {
    return both(g.x[0].kthvalue(a.whole("k", 1), a.whole("dim", -1), a.flag("keepdim")));
  };
  calls["unique"] = [](const Given& g, const Args& a) {
    const UniqueResult r = g.x[0].unique({.return_inverse = true, .return_counts = true, .dim = a.maybe("dim")});
    return Tensors{r.values, r.inverse, r.counts};
  };
  calls["searchsorted"] = [](const Given& g, const Args& a) {
    return Tensors{searchsorted(g.x[0], g.x[1], {.right = a.flag("right")})};
  };
  calls["bucketize"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].bucketize(g.x[1], {.right = a.flag("right")})};
  };
  calls["bincount"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].bincount(g.x.size() > 1 ? g.x[1] : Tensor(), a.whole("minlength", 0))};
  };
  calls["histogram"] = [](const Given& g, const Args& a) {
    const std::optional<std::pair<double, double>> range =
        a.has("low") ? std::optional(std::pair(a.number("low", 0), a.number("high", 0))) : std::nullopt;
    const HistogramResult r = g.x[0].histogram(a.whole("bins", 100), range);
    return Tensors{r.counts, r.edges};
  };
}

inline void add_composed(Calls& calls) {
  const auto options = [](const Args& a) {
    return CloseOptions{
        .rtol = a.number("rtol", 1e-5), .atol = a.number("atol", 1e-8), .equal_nan = a.flag("equal_nan")};
  };
  calls["addcmul"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].addcmul(g.x[1], g.x[2], a.number("value", 1))};
  };
  calls["addcdiv"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].addcdiv(g.x[1], g.x[2], a.number("value", 1))};
  };
  calls["nan_to_num"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].nan_to_num(a.number("nan", 0), a.maybe_number("posinf"), a.maybe_number("neginf"))};
  };
  calls["isclose"] = [options](const Given& g, const Args& a) { return Tensors{g.x[0].isclose(g.x[1], options(a))}; };
  calls["allclose"] = [options](const Given& g, const Args& a) {
    return Tensors{full({}, g.x[0].allclose(g.x[1], options(a)))};
  };
  calls["equal"] = [](const Given& g, const Args& a) {
    return Tensors{full({}, g.x[0].equal(a.flag("self") ? g.x[0].clone() : g.x[1]))};
  };
}

inline const Calls& function_calls() {
  static const Calls calls = [] {
    Calls all;
    add_reductions(all);
    add_rows_and_scans(all);
    add_linear(all);
    add_views(all);
    add_shapes(all);
    add_picks(all);
    add_orders(all);
    add_composed(all);
    add_further(all);
    return all;
  }();
  return calls;
}

}  // namespace volta::oracle
