// Samples of views, copies, and what joins and splits.
#include "samples.h"

namespace volta::test {
namespace {

Tensor flat(const Tensor& x) { return x.defined() ? x.contiguous() : x; }

}  // namespace

void add_views(std::vector<Sample>& list) {
  const Input cube{{3, 4, 2}}, matrix{{4, 6}};
  list.push_back(one("reshape", "reshape", {cube}, [](const Tensors& x) { return x[0].reshape({4, -1}); }));
  list.push_back(one("reshape", "reshape of transposed", {cube}, [](const Tensors& x) {
    return (x[0].defined() && x[0].dim() > 1 ? x[0].transpose(0, 1) : x[0]).reshape({-1, 3});
  }));
  list.push_back(one("view", "view", {cube}, [](const Tensors& x) { return flat(x[0]).view({12, 2}); }));
  list.push_back(one("permute", "permute", {cube}, [](const Tensors& x) { return x[0].permute({2, 0, 1}); }));
  list.push_back(one("transpose", "transpose", {cube}, [](const Tensors& x) { return x[0].transpose(0, -1); }));
  list.push_back(one("t", "t", {matrix}, [](const Tensors& x) { return x[0].t(); }));
  list.push_back(one("mT", "mT", {cube}, [](const Tensors& x) { return x[0].mT(); }));
  list.push_back(one("movedim", "movedim", {cube}, [](const Tensors& x) { return x[0].movedim(0, -1); }));
  list.push_back(one("moveaxis", "moveaxis", {cube}, [](const Tensors& x) { return x[0].moveaxis(0, -1); }));
  list.push_back(one("swapaxes", "swapaxes", {cube}, [](const Tensors& x) { return x[0].swapaxes(0, -1); }));
  list.push_back(one("swapdims", "swapdims", {cube}, [](const Tensors& x) { return x[0].swapdims(0, -1); }));
  list.push_back(one("atleast_1d", "atleast_1d", {{{}}}, [](const Tensors& x) { return atleast_1d(x[0]); }));
  list.push_back(one("atleast_2d", "atleast_2d", {{{3}}}, [](const Tensors& x) { return atleast_2d(x[0]); }));
  list.push_back(one("atleast_3d", "atleast_3d", {matrix}, [](const Tensors& x) { return atleast_3d(x[0]); }));
  list.push_back({
      "tensor_split",
      "tensor_split",
      [](const Tensors& x) { return x[0].tensor_split(4, 1); },
      {matrix},
  });
  list.push_back({
      "tensor_split",
      "tensor_split places",
      [](const Tensors& x) {
        return x[0].tensor_split(std::vector<int64_t>{1, 3}, 1);
      },
      {matrix},
  });
  const auto add_pieces = [&](const char* name, auto split) {
    const Input even{{4, 6, 2}};
    list.push_back({name, name, [=](const Tensors& x) { return split(x[0], 2); }, {even}});
    list.push_back(
        {name, std::string(name) + " places", [=](const Tensors& x) { return split(x[0], Ints{1}); }, {even}});
  };
  add_pieces("hsplit", [](const Tensor& x, const auto& places) { return hsplit(x, places); });
  add_pieces("vsplit", [](const Tensor& x, const auto& places) { return vsplit(x, places); });
  add_pieces("dsplit", [](const Tensor& x, const auto& places) { return dsplit(x, places); });
  list.push_back({
      "broadcast_tensors",
      "broadcast_tensors",
      [](const Tensors& x) {
        return broadcast_tensors({x[0], x[1]});
      },
      {{{3, 1}}, {{4}}},
  });
  list.push_back(one("ravel", "ravel", {cube}, [](const Tensors& x) { return x[0].ravel(); }));
  list.push_back(one("reshape_as", "reshape_as", {cube}, [](const Tensors& x) {
    return x[0].reshape_as(zeros({6, 4}));
  }));
  list.push_back(one("fliplr", "fliplr", {matrix}, [](const Tensors& x) { return x[0].fliplr(); }));
  list.push_back(one("flipud", "flipud", {matrix}, [](const Tensors& x) { return x[0].flipud(); }));
  list.push_back(one("expand", "expand", {{{3, 1}}}, [](const Tensors& x) { return x[0].expand({2, -1, 4}); }));
  list.push_back(one("expand_as", "expand_as", {{{3, 1}}}, [](const Tensors& x) {
    return x[0].expand_as(zeros({3, 4}));
  }));
  list.push_back(one("broadcast_to", "broadcast_to", {{{1, 3}}}, [](const Tensors& x) {
    return x[0].broadcast_to({4, 3});
  }));
  list.push_back(one("squeeze", "squeeze", {{{3, 1, 2}}}, [](const Tensors& x) { return x[0].squeeze(1); }));
  list.push_back(one("unsqueeze", "unsqueeze", {matrix}, [](const Tensors& x) { return x[0].unsqueeze(-1); }));
  list.push_back(one("flatten", "flatten", {cube}, [](const Tensors& x) { return x[0].flatten(1); }));
  list.push_back(one("unflatten", "unflatten", {matrix}, [](const Tensors& x) { return x[0].unflatten(1, {2, -1}); }));
  list.push_back(one("narrow", "narrow", {matrix}, [](const Tensors& x) { return x[0].narrow(1, 2, 3); }));
  list.push_back(one("slice", "slice", {matrix}, [](const Tensors& x) { return x[0].slice(1, 1, {}, 2); }));
  list.push_back(one("slice", "slice backwards", {matrix}, [](const Tensors& x) { return x[0].slice(1, {}, {}, -2); }));
  list.push_back(one("select", "select", {cube}, [](const Tensors& x) { return x[0].select(1, -1); }));
  list.push_back(one("view_as", "view_as", {cube}, [](const Tensors& x) { return flat(x[0]).view_as(zeros({6, 4})); }));
  list.push_back(one("type_as", "type_as", {cube}, [](const Tensors& x) { return x[0].type_as(x[0]); }));
  list.push_back(one("clip", "clip", {cube}, [](const Tensors& x) { return x[0].clip(0, 1); }));
  list.push_back(one("flip", "flip", {cube}, [](const Tensors& x) { return x[0].flip({0, 2}); }));
  list.push_back(one("diagonal", "diagonal", {cube}, [](const Tensors& x) { return x[0].diagonal(1, 1, 0); }));
  list.push_back(one("unfold", "unfold", {matrix}, [](const Tensors& x) { return x[0].unfold(1, 3, 2); }));
  list.push_back(one("as_strided", "as_strided", {matrix}, [](const Tensors& x) {
    return flat(x[0]).as_strided({3, 3}, {2, 3}, {});
  }));
  list.push_back({
      "split",
      "split size",
      [](const Tensors& x) { return x[0].split(4, 1); },
      {matrix},
  });
  list.push_back({
      "split",
      "split sizes",
      [](const Tensors& x) {
        return x[0].split(std::vector<int64_t>{1, 3}, 0);
      },
      {matrix},
  });
  list.push_back({
      "chunk",
      "chunk",
      [](const Tensors& x) { return x[0].chunk(3, 1); },
      {matrix},
  });
  list.push_back({
      "unbind",
      "unbind",
      [](const Tensors& x) { return x[0].unbind(1); },
      {cube},
  });
}

void add_shapes(std::vector<Sample>& list) {
  const Input cube{{3, 4, 2}}, matrix{{4, 6}};
  list.push_back(one("contiguous", "contiguous", {matrix}, [](const Tensors& x) {
    return (x[0].defined() && x[0].dim() == 2 ? x[0].t() : x[0]).contiguous();
  }));
  list.push_back(one("clone", "clone", {matrix}, [](const Tensors& x) { return x[0].clone(); }));
  list.push_back(one("to", "to dtype", {matrix}, [](const Tensors& x) { return x[0].to(f64).to(x[0].dtype()); }));
  list.push_back(one("cat", "cat", {matrix, {{2, 6}}}, [](const Tensors& x) { return cat({x[0], x[1], x[0]}, 0); }));
  list.push_back(one("stack", "stack", {matrix, matrix}, [](const Tensors& x) { return stack({x[0], x[1]}, 1); }));
  list.push_back(one("vstack", "vstack", {matrix, {{6}}}, [](const Tensors& x) { return vstack({x[0], x[1]}); }));
  list.push_back(one("hstack", "hstack", {matrix, {{4, 2}}}, [](const Tensors& x) { return hstack({x[0], x[1]}); }));
  list.push_back(one("dstack", "dstack", {matrix, matrix}, [](const Tensors& x) { return dstack({x[0], x[1]}); }));
  list.push_back(one("column_stack", "column_stack", {matrix, {{4}}}, [](const Tensors& x) {
    return column_stack({x[0], x[1]});
  }));
  list.push_back(one("block_diag", "block_diag", {matrix, {{2}}, {{}}}, [](const Tensors& x) {
    return block_diag({x[0], x[1], x[2]});
  }));
  list.push_back(one("cartesian_prod", "cartesian_prod", {{{3}}, {{2}}}, [](const Tensors& x) {
    return cartesian_prod({x[0], x[1]});
  }));
  list.push_back(one("combinations", "combinations", {{{4}}}, [](const Tensors& x) { return combinations(x[0], 2); }));
  for (int k : {1, 2, 3})
    list.push_back({
        "rot90",
        "rot90 " + std::to_string(k),
        [k](const Tensors& x) {
          return Tensors{x[0].rot90(k, {2, 0})};
        },
        {cube},
    });
  list.push_back(one("diag_embed", "diag_embed", {matrix}, [](const Tensors& x) { return x[0].diag_embed(-1, 2, 0); }));
  list.push_back(one("diagflat", "diagflat", {{{2, 3}}}, [](const Tensors& x) { return x[0].diagflat(-1); }));
  list.push_back(one("select_scatter", "select_scatter", {matrix, {{4}}},
                     [](const Tensors& x) { return x[0].select_scatter(x[1], 1, -2); }));
  list.push_back(one("slice_scatter", "slice_scatter", {matrix, {{4, 3}}},
                     [](const Tensors& x) { return x[0].slice_scatter(x[1], 1, 1, {}, 2); }));
  list.push_back(one("diagonal_scatter", "diagonal_scatter", {matrix, {{4}}},
                     [](const Tensors& x) { return x[0].diagonal_scatter(x[1], 1); }));
  list.push_back(one("roll", "roll", {matrix}, [](const Tensors& x) { return x[0].roll({1, -2}, {0, 1}); }));
  list.push_back(one("roll", "roll flat", {matrix}, [](const Tensors& x) { return x[0].roll(3); }));
  list.push_back(one("tile", "tile", {matrix}, [](const Tensors& x) { return x[0].tile({2, 1, 2}); }));
  list.push_back(one("repeat", "repeat", {matrix}, [](const Tensors& x) { return x[0].repeat({2, 3}); }));
  list.push_back(one("repeat_interleave", "repeat_interleave", {matrix},
                     [](const Tensors& x) { return x[0].repeat_interleave(2, 1); }));
  list.push_back(one("repeat_interleave", "repeat_interleave own", {matrix}, [](const Tensors& x) {
    return x[0].repeat_interleave(beside(x[0], tensor({1, 0, 3, 2})), 0);
  }));
  for (const char* mode : {"constant", "reflect", "replicate", "circular"})
    list.push_back({
        "pad",
        std::string("pad ") + mode,
        [mode](const Tensors& x) {
          return Tensors{x[0].pad({1, 2, 2, 1}, {.mode = mode})};
        },
        {{{2, 4, 5}}},
    });
  list.push_back(one("tril", "tril", {matrix}, [](const Tensors& x) { return x[0].tril(1); }));
  list.push_back(one("triu", "triu", {cube}, [](const Tensors& x) { return x[0].triu(-1); }));
  list.push_back(one("diag", "diag of vector", {{{3}}}, [](const Tensors& x) { return x[0].diag(1); }));
  list.push_back(one("diag", "diag of matrix", {matrix}, [](const Tensors& x) { return x[0].diag(-1); }));
}

}  // namespace volta::test
