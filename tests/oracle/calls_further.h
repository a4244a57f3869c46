// How stacks, statistics, distances and further writes by index are called with the oracle's arguments.
#pragma once
#include "oracle/given.h"

namespace volta::oracle {

inline void add_stacks(Calls& calls) {
  using Many = Tensor (*)(const std::vector<Tensor>&);
  const std::map<std::string, Many> many = {{"vstack", vstack},         {"hstack", hstack},
                                            {"dstack", dstack},         {"column_stack", column_stack},
                                            {"block_diag", block_diag}, {"cartesian_prod", cartesian_prod}};
  for (const auto& [name, f] : many) calls[name] = [f = f](const Given& g, const Args&) { return Tensors{f(g.x)}; };
  using One = Tensor (*)(const Tensor&);
  const std::map<std::string, One> one = {
      {"atleast_1d", atleast_1d}, {"atleast_2d", atleast_2d}, {"atleast_3d", atleast_3d}, {"fliplr", fliplr},
      {"flipud", flipud},         {"corrcoef", corrcoef},     {"argwhere", argwhere}};
  for (const auto& [name, f] : one) calls[name] = [f = f](const Given& g, const Args&) { return Tensors{f(g.x[0])}; };
  calls["combinations"] = [](const Given& g, const Args& a) {
    return Tensors{combinations(g.x[0], a.whole("r", 2), a.flag("with_replacement"))};
  };
  calls["moveaxis"] = [](const Given& g, const Args&) { return Tensors{g.x[0].moveaxis(0, 2)}; };
  calls["swapaxes"] = [](const Given& g, const Args&) { return Tensors{g.x[0].swapaxes(0, 2)}; };
  calls["swapdims"] = [](const Given& g, const Args&) { return Tensors{g.x[0].swapdims(0, 2)}; };
  calls["rot90"] = [](const Given& g, const Args& a) { return Tensors{g.x[0].rot90(a.whole("k", 1), a.axes("dims"))}; };
  calls["diag_embed"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].diag_embed(a.whole("offset", 0), a.whole("dim1", -2), a.whole("dim2", -1))};
  };
  calls["tensor_split"] = [](const Given& g, const Args& a) {
    const int64_t dim = a.whole("dim", 0);
    return a.has("sections") ? g.x[0].tensor_split(a.whole("sections", 1), dim)
                             : g.x[0].tensor_split(a.list("indices"), dim);
  };
}

template <class Split> auto pieces(Split split) {
  return [split](const Given& g, const Args& a) {
    return a.has("sections") ? split(g.x[0], a.whole("sections", 1)) : split(g.x[0], Ints(a.list("indices")));
  };
}

inline void add_pieces_and_parts(Calls& calls) {
  calls["hsplit"] = pieces([](const Tensor& x, const auto& at) { return hsplit(x, at); });
  calls["vsplit"] = pieces([](const Tensor& x, const auto& at) { return vsplit(x, at); });
  calls["dsplit"] = pieces([](const Tensor& x, const auto& at) { return dsplit(x, at); });
  calls["broadcast_tensors"] = [](const Given& g, const Args&) { return broadcast_tensors(g.x); };
  calls["ravel"] = [](const Given& g, const Args&) { return Tensors{g.x[0].ravel()}; };
  calls["reshape_as"] = [](const Given& g, const Args&) { return Tensors{g.x[0].reshape_as(g.x[1])}; };
  calls["diagflat"] = [](const Given& g, const Args& a) { return Tensors{g.x[0].diagflat(a.whole("offset", 0))}; };
  calls["select_scatter"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].select_scatter(g.x[1], a.whole("dim", 0), a.whole("index", 0))};
  };
  calls["slice_scatter"] = [](const Given& g, const Args& a) {
    return Tensors{
        g.x[0].slice_scatter(g.x[1], a.whole("dim", 0), a.maybe("begin"), a.maybe("end"), a.whole("step", 1))};
  };
  calls["diagonal_scatter"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].diagonal_scatter(g.x[1], a.whole("offset", 0), a.whole("dim1", 0), a.whole("dim2", 1))};
  };
}

inline void add_order_and_products(Calls& calls) {
  calls["mode"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].mode(a.whole("dim", -1), a.flag("keepdim")).values};
  };
  calls["msort"] = [](const Given& g, const Args&) { return Tensors{g.x[0].msort()}; };
  calls["histc"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].histc(a.whole("bins", 100), a.number("min", 0), a.number("max", 0))};
  };
  calls["unravel_index"] = [](const Given& g, const Args& a) { return unravel_index(g.x[0], a.list("shape")); };
  calls["float_power"] = [](const Given& g, const Args&) { return Tensors{g.x[0].float_power(g.x[1])}; };
  calls["isposinf"] = [](const Given& g, const Args&) { return Tensors{g.x[0].isposinf()}; };
  calls["isneginf"] = [](const Given& g, const Args&) { return Tensors{g.x[0].isneginf()}; };
  calls["inner"] = [](const Given& g, const Args&) { return Tensors{g.x[0].inner(g.x[1])}; };
  calls["renorm"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].renorm(a.number("p", 2), a.whole("dim", 0), a.number("maxnorm", 1))};
  };
  calls["index_reduce"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].index_reduce(a.whole("dim", 0), g.x[1], g.x[2], a.text("reduce"), a.flag("include_self"))};
  };
}

inline void add_statistics(Calls& calls) {
  const auto shares = [](const Given& g, const Args& a) {
    std::vector<double> values;
    std::istringstream in(a.text("q"));
    for (std::string word; std::getline(in, word, ',');) values.push_back(std::stod(word));
    const Tensor q = tensor(values).to(g.x[0].dtype()).to(g.x[0].device());
    return values.size() == 1 ? q.reshape({}) : q;
  };
  calls["quantile"] = [=](const Given& g, const Args& a) {
    return Tensors{
        g.x[0].quantile(shares(g, a), a.maybe("dim"), a.flag("keepdim"), {.interpolation = a.text("interpolation")})};
  };
  calls["nanquantile"] = [=](const Given& g, const Args& a) {
    return Tensors{g.x[0].nanquantile(shares(g, a), a.maybe("dim"), a.flag("keepdim"),
                                      {.interpolation = a.text("interpolation")})};
  };
  calls["nanmean"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].nanmean(a.axes("dim"), a.flag("keepdim"))};
  };
  calls["nanmedian"] = [](const Given& g, const Args& a) {
    if (!a.has("dim")) return Tensors{g.x[0].nanmedian()};
    const ValuesIndices r = g.x[0].nanmedian(a.whole("dim", 0));
    return a.flag("values") ? Tensors{r.values} : both(r);
  };
  calls["aminmax"] = [](const Given& g, const Args& a) {
    const auto [low, high] = g.x[0].aminmax(a.maybe("dim"), a.flag("keepdim"));
    return Tensors{low, high};
  };
  const auto options = [](const Args& a) {
    return VarOptions{.correction = a.number("correction", 1), .keepdim = a.flag("keepdim")};
  };
  calls["var_mean"] = [=](const Given& g, const Args& a) {
    const auto [v, m] = var_mean(g.x[0], a.axes("dim"), options(a));
    return Tensors{v, m};
  };
  calls["std_mean"] = [=](const Given& g, const Args& a) {
    const auto [s, m] = std_mean(g.x[0], a.axes("dim"), options(a));
    return Tensors{s, m};
  };
  calls["cov"] = [](const Given& g, const Args& a) {
    CovOptions o{.correction = a.whole("correction", 1)};
    if (g.x.size() > 1) o.fweights = g.x[1], o.aweights = g.x[2];
    return Tensors{g.x[0].cov(o)};
  };
  const auto steps = [](const Args& a) { return TrapezoidOptions{.dx = a.number("dx", 1), .dim = a.whole("dim", -1)}; };
  calls["trapezoid"] = [=](const Given& g, const Args& a) {
    return Tensors{trapezoid(g.x[0], g.x.size() > 1 ? g.x[1] : Tensor(), steps(a))};
  };
  calls["cumulative_trapezoid"] = [=](const Given& g, const Args& a) {
    return Tensors{cumulative_trapezoid(g.x[0], g.x.size() > 1 ? g.x[1] : Tensor(), steps(a))};
  };
}

inline void add_products(Calls& calls) {
  using Added = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, double, double);
  const std::map<std::string, Added> added = {
      {"baddbmm", baddbmm}, {"addbmm", addbmm}, {"addmv", addmv}, {"addr", addr}};
  for (const auto& [name, f] : added)
    calls[name] = [f = f](const Given& g, const Args& a) {
      return Tensors{f(g.x[0], g.x[1], g.x[2], a.number("beta", 1), a.number("alpha", 1))};
    };
  calls["cdist"] = [](const Given& g, const Args& a) { return Tensors{cdist(g.x[0], g.x[1], a.number("p", 2))}; };
  calls["dist"] = [](const Given& g, const Args& a) { return Tensors{dist(g.x[0], g.x[1], a.number("p", 2))}; };
  calls["pdist"] = [](const Given& g, const Args& a) { return Tensors{pdist(g.x[0], a.number("p", 2))}; };
  calls["vander"] = [](const Given& g, const Args& a) {
    return Tensors{vander(g.x[0], a.maybe("n"), a.flag("increasing"))};
  };
}

inline void add_further(Calls& calls) {
  add_stacks(calls);
  add_statistics(calls);
  add_products(calls);
  add_pieces_and_parts(calls);
  add_order_and_products(calls);
  calls["index_copy"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].index_copy(a.whole("dim", 0), g.x[1], g.x[2])};
  };
  calls["index_fill"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].index_fill(a.whole("dim", 0), g.x[1], a.whole("value", 0))};
  };
  calls["index_put"] = [](const Given& g, const Args& a) {
    return Tensors{g.x[0].index_put({g.x.begin() + 2, g.x.end()}, g.x[1], a.flag("accumulate"))};
  };
  calls["masked_scatter"] = [](const Given& g, const Args&) { return Tensors{g.x[0].masked_scatter(g.x[1], g.x[2])}; };
  calls["isin"] = [](const Given& g, const Args& a) {
    return Tensors{isin(g.x[0], g.x[1], {.invert = a.flag("invert")})};
  };
  calls["unique_consecutive"] = [](const Given& g, const Args& a) {
    const UniqueResult r =
        g.x[0].unique_consecutive({.return_inverse = true, .return_counts = true, .dim = a.maybe("dim")});
    return Tensors{r.values, r.inverse, r.counts};
  };
}

}  // namespace volta::oracle
