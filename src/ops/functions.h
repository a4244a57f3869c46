// Every op that is not pointwise, declared once: functions, methods, the table in the docs and the tests' op lists come
// from here. Pointwise ops and plain reductions declare themselves in src/math. Not ops, and declared by hand: what makes
// tensors (create.h, random.h, and sinusoidal_positions), check_finite (gives its argument back), conv_algorithm (gives a
// name), pooling:: (of any number of axes: the bodies of the ops below), and the methods of PackedSequence.
#pragma once
#include <string>

#include "math/reducers.h"

namespace volta {

enum class As { by_group, both, function };  // `both`: also a method, called on the first parameter

// How often an op can be differentiated: any number of times, or not at all (it then refuses inputs that require grad,
// unless its result is of integers or booleans).
enum class Grad { any, no };
inline constexpr const char* grad_words[] = {"any number of times", "no"};

// The dtypes of an op's values; of its indices, if it takes nothing else. Others are an Error, before anything is computed.
enum class Takes { by_group, all, numeric, floating, integral, promoted, integers };
inline constexpr const char* takes_words[] = {
    "",        "all", "all but bool", "floating", "integers and bool", "all; integers and bool as the default float",
    "integers"};

// The dtypes an elementwise op or a reduction takes.
constexpr Takes takes_of(Domain domain) {
  constexpr Takes of[] = {Takes::promoted, Takes::numeric, Takes::all, Takes::integral};
  return of[int(domain)];
}
constexpr Takes takes_of(reducers::Elements e) { return e == reducers::Elements::real ? Takes::promoted : Takes::all; }

struct Group {
  const char* name;
  Takes takes;
  As as = As::both;
};
inline constexpr Group groups[] = {
    {"pointwise", Takes::promoted},
    {"reduce", Takes::all},
    {"rows", Takes::floating},
    {"scan", Takes::all},
    {"linear", Takes::numeric},
    {"view", Takes::all},
    {"shape", Takes::all},
    {"index", Takes::all},
    {"activation", Takes::floating, As::function},
    {"dropout", Takes::floating, As::function},
    {"norm", Takes::floating, As::function},
    {"attention", Takes::floating, As::function},
    {"conv", Takes::floating, As::function},
    {"pool", Takes::floating, As::function},
    {"resample", Takes::floating, As::function},
    {"loss", Takes::floating, As::function},
    {"recurrent", Takes::floating, As::function},
    {"sequence", Takes::all, As::function},
};

struct Also {
  const char* result = "Tensor";
  As as = As::by_group;
  Grad grad = Grad::any;
  Takes takes = Takes::by_group;
};
inline constexpr Also no_method{.as = As::function}, no_grad{.grad = Grad::no}, two_results{"ValuesIndices"};
inline constexpr Also many_results{"std::vector<Tensor>"}, one_truth{"bool", As::both, Grad::no, Takes::all};
inline constexpr Also result_list{"std::vector<Tensor>", As::function};
inline constexpr Also unique_result{.result = "UniqueResult", .grad = Grad::no};
inline constexpr Also any_dtype{.takes = Takes::all}, numbers{.takes = Takes::numeric};
inline constexpr Also floats{.takes = Takes::floating}, as_floats{.takes = Takes::promoted};

struct Function {
  const char *group, *name, *parameters, *doc;
  Also also = {};

  constexpr As as() const { return also.as == As::by_group ? of_group().as : also.as; }
  constexpr Takes takes() const { return also.takes == Takes::by_group ? of_group().takes : also.takes; }
  constexpr const Group& of_group() const {
    const Group* g = groups;
    while (std::string_view(g->name) != group) ++g;
    return *g;
  }
};

// Parameters without a type are tensors, types are the words below, and options are named by their type alone.
struct Word {
  const char *word, *type;
};
inline constexpr Word words[] = {
    {"int", "int64_t"},
    {"int?", "std::optional<int64_t>"},
    {"double?", "std::optional<double>"},
    {"Axes", "const Axes&"},
    {"tensors", "const std::vector<Tensor>&"},
    {"Shape", "const Shape&"},
    {"Operand", "const Operand&"},
    {"string", "const std::string&"},
    {"Device", "const Device&"},
    {"Ints", "const Ints&"},
    {"ScatterReduce", "const Choice<ScatterReduce>&"},
    {"PerAxis", "const PerAxis&"},
    {"lengths", "const std::vector<int64_t>&"},
};

// A # stands for 1, 2 and 3: so many ops in one. A line or two per op read best.
// clang-format off
inline constexpr Function functions[] = {
    {"reduce", "sum", "x, Axes dim = {}, keepdim", "sum over axes; integers sum as i64: sum(x, {0, 2})"},
    {"reduce", "mean", "x, Axes dim = {}, keepdim", "arithmetic mean over axes: mean(x, -1, true)", floats},
    {"reduce", "prod", "x, Axes dim = {}, keepdim", "product over axes: prod(x)"},
    {"reduce", "amax", "x, Axes dim = {}, keepdim",
     "largest over axes; tied elements share the gradient: amax(x, {1, 2})"},
    {"reduce", "amin", "x, Axes dim = {}, keepdim", "smallest over axes; tied elements share the gradient: amin(x, 0)"},
    {"reduce", "max", "x", "largest element: max(x)"},
    {"reduce", "min", "x", "smallest element: min(x)"},
    {"reduce", "max", "x, int dim, keepdim",
     "largest along an axis and where it first stands: auto [v, i] = max(x, 1)", two_results},
    {"reduce", "min", "x, int dim, keepdim",
     "smallest along an axis and where it first stands: auto [v, i] = min(x, 1)", two_results},
    {"reduce", "max", "x, other", "the larger of two tensors, maximum under its other name: max(x, y)"},
    {"reduce", "min", "x, other", "the smaller of two tensors, minimum under its other name: min(x, y)"},
    {"reduce", "argmax", "x, int? dim = {}, keepdim",
     "index of the largest; of the flattened tensor without an axis: argmax(x, 1)", no_grad},
    {"reduce", "argmin", "x, int? dim = {}, keepdim", "index of the smallest: argmin(x, 1)", no_grad},
    {"reduce", "count_nonzero", "x, Axes dim = {}", "how many elements are not 0: count_nonzero(x, 1)", no_grad},
    {"reduce", "var", "x, Axes dim = {}, VarOptions", "variance over axes: var(x, 1, {.correction = 0})", floats},
    {"reduce", "std_dev", "x, Axes dim = {}, VarOptions",
     "standard deviation over axes; the method is x.std(…)", {.as = As::function, .takes = Takes::floating}},
    {"reduce", "norm", "x, double p = 2, Axes dim = {}, keepdim",
     "p-norm over axes, p from 0 to infinity: norm(x, 1, -1)", floats},
    {"reduce", "dist", "x, other, double p = 2", "p-norm of the difference, over all elements: dist(x, y)", floats},
    {"reduce", "median", "x", "the lower median of all elements: median(x)"},
    {"reduce", "median", "x, int dim, keepdim",
     "the lower median along an axis and where it stands: median(x, 1)", two_results},
    {"reduce", "mode", "x, int dim = -1, keepdim",
     "the most frequent value along an axis, the smallest of several, and where it stands last: auto [v, i] = mode(x, 1)", two_results},
    {"reduce", "nanmean", "x, Axes dim = {}, keepdim", "mean of what is not NaN: nanmean(x, 1)", floats},
    {"reduce", "nanmedian", "x", "the lower median of what is not NaN: nanmedian(x)"},
    {"reduce", "nanmedian", "x, int dim, keepdim",
     "the lower median along an axis, NaN left out, and where it stands: nanmedian(x, 1)", two_results},
    {"reduce", "quantile", "x, Operand q, int? dim = {}, keepdim, QuantileOptions",
     "values below which a share of the elements lies; several q make a first axis: quantile(x, 0.9, 1)", floats},
    {"reduce", "nanquantile", "x, Operand q, int? dim = {}, keepdim, QuantileOptions",
     "quantile of what is not NaN: nanquantile(x, 0.5)", floats},
    {"reduce", "aminmax", "x, int? dim = {}, keepdim",
     "smallest and largest, of all or along an axis: auto [low, high] = aminmax(x)", {"MinMax"}},
    {"reduce", "var_mean", "x, Axes dim = {}, VarOptions",
     "variance and mean: auto [v, m] = var_mean(x, 1)", {.result = "VarMean", .as = As::function, .takes = Takes::floating}},
    {"reduce", "std_mean", "x, Axes dim = {}, VarOptions",
     "standard deviation and mean: auto [s, m] = std_mean(x, 1)", {.result = "StdMean", .as = As::function, .takes = Takes::floating}},
    {"reduce", "cov", "x, CovOptions", "covariances of the rows: cov(x, {.correction = 0})", {.as = As::function, .takes = Takes::numeric}},
    {"reduce", "corrcoef", "x", "correlation coefficients of the rows: corrcoef(x)", numbers},
    {"reduce", "trapezoid", "y, const Tensor& x = {}, TrapezoidOptions",
     "integral by the trapezoidal rule: trapezoid(y, x) or trapezoid(y, {}, {.dx = 0.1})", no_method},
    {"reduce", "cumulative_trapezoid", "y, const Tensor& x = {}, TrapezoidOptions",
     "running integral by the trapezoidal rule: cumulative_trapezoid(y)", no_method},
    {"rows", "softmax", "x, int dim", "exponentials that sum to 1 along an axis: softmax(x, -1)"},
    {"rows", "log_softmax", "x, int dim", "log of softmax, stable: log_softmax(x, -1)"},
    {"rows", "renorm", "x, double p, int dim, double maxnorm",
     "slices of an axis whose p-norm is above maxnorm, scaled down to it: renorm(x, 2, 0, 1)"},
    {"scan", "cumsum", "x, int dim", "running sum along an axis: cumsum(x, 1)"},
    {"scan", "cumprod", "x, int dim", "running product along an axis: cumprod(x, 1)"},
    {"scan", "cummax", "x, int dim", "running maximum and where it stands: cummax(x, 0)", two_results},
    {"scan", "cummin", "x, int dim", "running minimum and where it stands: cummin(x, 0)", two_results},
    {"scan", "logcumsumexp", "x, int dim", "running logsumexp along an axis: logcumsumexp(x, 0)", floats},
    {"scan", "diff", "x, int n = 1, int dim = -1", "n-th difference of neighbours: diff(x)"},

    {"linear", "matmul", "x, other", "matrix product of vectors, matrices or batches, with broadcasting: matmul(a, b)"},
    {"linear", "mm", "x, other", "matrix product of two matrices: mm(a, b)"},
    {"linear", "bmm", "x, other", "matrix product of two batches of matrices: bmm(a, b)"},
    {"linear", "mv", "x, vector", "matrix times vector: mv(m, v)"},
    {"linear", "dot", "x, other", "inner product of two vectors: dot(a, b)"},
    {"linear", "inner", "x, other", "sums of products over the last axes: inner(a, b)"},
    {"linear", "outer", "x, other", "outer product of two vectors: outer(a, b)", any_dtype},
    {"linear", "addmm", "x, a, b, double beta = 1, double alpha = 1", "beta * x + alpha * (a @ b): addmm(bias, a, b)"},
    {"linear", "baddbmm", "x, a, b, double beta = 1, double alpha = 1",
     "beta * x + alpha * (a @ b) of batches: baddbmm(bias, a, b)"},
    {"linear", "addbmm", "x, a, b, double beta = 1, double alpha = 1",
     "beta * x + alpha * the sum of a @ b over the batch: addbmm(bias, a, b)"},
    {"linear", "addmv", "x, a, v, double beta = 1, double alpha = 1",
     "beta * x + alpha * (a @ v) of a matrix and a vector: addmv(bias, a, v)"},
    {"linear", "addr", "x, u, v, double beta = 1, double alpha = 1",
     "beta * x + alpha * outer(u, v): addr(m, u, v)"},
    {"linear", "cdist", "x, other, double p = 2",
     "p-norm distances between the rows of two (batches of) matrices: cdist(a, b)", {.as = As::function, .takes = Takes::floating}},
    {"linear", "pdist", "x, double p = 2",
     "p-norm distances between all pairs of different rows: pdist(x)", {.as = As::function, .takes = Takes::floating}},
    {"linear", "vander", "x, int? n = {}, bool increasing = false",
     "powers of the elements as columns: vander(x, 3)", {.as = As::function, .takes = Takes::all}},
    {"linear", "linear", "x, weight, const Tensor& bias = {}, LinearOptions",
     "x @ weight^T + bias, with an activation fused in: linear(x, w, b, {.activation = \"relu\"})", no_method},
    {"linear", "tensordot", "x, other, Ints dims_x, Ints dims_other",
     "contraction of the paired axes: tensordot(a, b, {1}, {0})", no_method},
    {"linear", "tensordot", "x, other, int dims",
     "contraction of the last with the first axes: tensordot(a, b, 1)", no_method},
    {"linear", "kron", "x, other", "Kronecker product: kron(a, b)", any_dtype},
    {"linear", "trace", "x", "sum of the main diagonal: trace(m)", any_dtype},
    {"linear", "cross", "x, other, int dim = -1", "cross product of 3-vectors: cross(a, b)"},
    {"linear", "einsum", "string equation, tensors operands",
     "Einstein summation: einsum(\"bij,bjk->bik\", {a, b})", no_method},

    {"view", "reshape", "x, Shape shape",
     "another shape of the same elements, a view where possible; one size may be -1: reshape(x, {3, -1})"},
    {"view", "reshape_as", "x, other", "reshape to another's shape: reshape_as(x, y)"},
    {"view", "ravel", "x", "all axes joined into one: ravel(x)"},
    {"view", "view", "x, Shape shape", "like reshape, but an error where a copy would be needed: x.view({3, -1})"},
    {"view", "view_as", "x, other", "view in another's shape: x.view_as(y)"},
    {"view", "permute", "x, Shape dims", "axes in another order: permute(x, {2, 0, 1})"},
    {"view", "transpose", "x, int dim0, int dim1", "two axes swapped: transpose(x, 0, 1)"},
    {"view", "t", "x", "the transposed matrix: t(x)"},
    {"view", "mT", "x", "the last two axes swapped: x.mT()"},
    {"view", "movedim", "x, Axes source, Axes destination", "axes moved to new places: movedim(x, 0, -1)"},
    {"view", "moveaxis", "x, Axes source, Axes destination", "movedim: moveaxis(x, 0, -1)"},
    {"view", "swapaxes", "x, int axis0, int axis1", "transpose: swapaxes(x, 0, 1)"},
    {"view", "swapdims", "x, int dim0, int dim1", "transpose: swapdims(x, 0, 1)"},
    {"view", "atleast_1d", "x", "a 0-d tensor as one of one axis: atleast_1d(x)", no_method},
    {"view", "atleast_2d", "x", "at least two axes, new ones in front: atleast_2d(x)", no_method},
    {"view", "atleast_3d", "x", "at least three axes, [n] as [1, n, 1] and [m, n] as [m, n, 1]: atleast_3d(x)", no_method},
    {"view", "tensor_split", "x, int sections, int dim = 0",
     "so many pieces, the first ones larger by one: tensor_split(x, 3)", many_results},
    {"view", "tensor_split", "x, Ints indices, int dim = 0",
     "pieces between the given places: tensor_split(x, {1, 3})", many_results},
    {"view", "hsplit", "x, int sections", "equal pieces along the columns, or of a vector: hsplit(x, 2)", many_results},
    {"view", "hsplit", "x, Ints indices", "pieces between the given columns: hsplit(x, {1, 3})", many_results},
    {"view", "vsplit", "x, int sections", "equal pieces along the rows: vsplit(x, 2)", many_results},
    {"view", "vsplit", "x, Ints indices", "pieces between the given rows: vsplit(x, {1, 3})", many_results},
    {"view", "dsplit", "x, int sections", "equal pieces along the third axis: dsplit(x, 2)", many_results},
    {"view", "dsplit", "x, Ints indices", "pieces between the given places of the third axis: dsplit(x, {1, 3})", many_results},
    {"view", "fliplr", "x", "columns reversed: fliplr(x)"},
    {"view", "flipud", "x", "rows reversed: flipud(x)"},
    {"view", "expand", "x, Shape shape", "size-1 axes repeated without copying; -1 keeps a size: expand(x, {4, -1})"},
    {"view", "expand_as", "x, other", "expanded to another's shape: expand_as(x, y)"},
    {"view", "broadcast_to", "x, Shape shape", "expand: broadcast_to(x, {4, 3})"},
    {"view", "broadcast_tensors", "tensors tensors", "all expanded to the shape they broadcast to: broadcast_tensors({x, y})",
     result_list},
    {"view", "squeeze", "x, Axes dim = {}", "axes of size 1 dropped: squeeze(x, 0)"},
    {"view", "unsqueeze", "x, int dim", "a new axis of size 1: unsqueeze(x, -1)"},
    {"view", "flatten", "x, int start_dim = 0, int end_dim = -1", "axes joined into one: flatten(x, 1)"},
    {"view", "unflatten", "x, int dim, Shape sizes", "an axis split into several: unflatten(x, 1, {2, -1})"},
    {"view", "narrow", "x, int dim, int start, int length", "a range of one axis: narrow(x, 0, 2, 3)"},
    {"view", "slice", "x, int dim, int? begin, int? end, int step = 1",
     "a Python slice of one axis, any step: slice(x, 0, 1, {}, 2)"},
    {"view", "select", "x, int dim, int index", "one index of one axis: select(x, 0, -1)"},
    {"view", "flip", "x, Axes dims", "axes reversed: flip(x, {1})"},
    {"view", "diagonal", "x, int offset = 0, int dim1 = 0, int dim2 = 1",
     "a diagonal as the last axis: diagonal(x, 1)"},
    {"view", "unfold", "x, int dim, int size, int step", "sliding windows as a new last axis: unfold(x, 0, 3, 1)"},
    {"view", "as_strided", "x, Shape size, Shape stride, int? storage_offset = {}",
     "any layout within the storage: as_strided(x, {2, 2}, {1, 2})"},
    {"view", "split", "x, int split_size, int dim = 0",
     "pieces of a size, the last may be smaller: split(x, 2)", many_results},
    {"view", "split", "x, Ints sizes, int dim = 0",
     "pieces of given sizes: split(x, {1, 3})", many_results},
    {"view", "chunk", "x, int chunks, int dim = 0", "about equal pieces: chunk(x, 3)", many_results},
    {"view", "unbind", "x, int dim = 0", "one tensor per index of an axis: unbind(x)", many_results},

    {"shape", "contiguous", "x", "x itself if row-major, else a row-major copy: contiguous(x)"},
    {"shape", "type_as", "x, other", "x in the dtype and on the device of another: x.type_as(y)"},
    {"shape", "clone", "x", "a copy: clone(x)"},
    {"shape", "to", "x, DType dtype", "another dtype; x itself if it has it already: x.to(f64)"},
    {"shape", "to", "x, Device device", "on another device; x itself if it is there: x.to(\"cuda\")"},
    {"shape", "to", "x, Device device, DType dtype", "both at once: x.to(\"cuda\", f16)"},
    {"shape", "cat", "tensors tensors, int dim = 0", "joined along an axis: cat({a, b}, 1)", no_method},
    {"shape", "stack", "tensors tensors, int dim = 0", "joined along a new axis: stack({a, b})", no_method},
    {"shape", "vstack", "tensors tensors", "joined as rows: vstack({a, b})", no_method},
    {"shape", "hstack", "tensors tensors", "joined as columns, vectors end to end: hstack({a, b})", no_method},
    {"shape", "dstack", "tensors tensors", "joined along the third axis: dstack({a, b})", no_method},
    {"shape", "column_stack", "tensors tensors", "joined as columns, vectors too: column_stack({a, b})", no_method},
    {"shape", "block_diag", "tensors tensors", "matrices along a diagonal, 0 elsewhere: block_diag({a, b})", no_method},
    {"shape", "cartesian_prod", "tensors tensors", "every choice of one element of each: cartesian_prod({a, b})", no_method},
    {"shape", "combinations", "x, int r = 2, bool with_replacement = false",
     "every choice of r elements of a vector: combinations(x, 2)", no_method},
    {"shape", "rot90", "x, int k = 1, Axes dims = {0, 1}", "turned by k quarters in the plane of two axes: rot90(x)"},
    {"shape", "diag_embed", "x, int offset = 0, int dim1 = -2, int dim2 = -1",
     "matrices with the last axis on a diagonal: diag_embed(x)"},
    {"shape", "diagflat", "x, int offset = 0", "a matrix with all elements on a diagonal, 0 elsewhere: diagflat(x)"},
    {"shape", "select_scatter", "x, src, int dim, int index",
     "a copy whose select(dim, index) is src: select_scatter(x, v, 0, -1)"},
    {"shape", "slice_scatter", "x, src, int dim = 0, int? begin = {}, int? end = {}, int step = 1",
     "a copy whose slice(dim, begin, end, step) is src: slice_scatter(x, y, 0, 2)"},
    {"shape", "diagonal_scatter", "x, src, int offset = 0, int dim1 = 0, int dim2 = 1",
     "a copy whose diagonal is src: diagonal_scatter(x, ones({3}))"},
    {"shape", "roll", "x, Axes shifts, Axes dims = {}", "elements shifted around an axis: roll(x, 1, 0)"},
    {"shape", "tile", "x, Shape dims", "the whole repeated: tile(x, {2, 1})"},
    {"shape", "repeat", "x, Shape sizes", "the whole repeated, as tile: repeat(x, {2, 1})"},
    {"shape", "repeat_interleave", "x, int repeats, int? dim = {}",
     "each element repeated: repeat_interleave(x, 2, 0)"},
    {"shape", "repeat_interleave", "x, repeats, int? dim = {}",
     "each element repeated its own number of times: repeat_interleave(x, n, 0)"},
    {"shape", "pad", "x, Ints pad, PadOptions",
     "pairs (before, after) from the last axis on: pad(x, {1, 1}, {.mode = \"reflect\"})"},
    {"shape", "tril", "x, int diagonal = 0", "the lower triangle, 0 elsewhere: tril(x)"},
    {"shape", "triu", "x, int diagonal = 0", "the upper triangle, 0 elsewhere: triu(x)"},
    {"shape", "diag", "x, int diagonal = 0", "a matrix from its diagonal, or the diagonal of a matrix: diag(v)"},

    {"index", "gather", "x, int dim, index", "values picked along an axis: gather(x, 1, i)"},
    {"index", "scatter", "x, int dim, index, Operand src", "values put along an axis, in a copy: scatter(x, 1, i, v)"},
    {"index", "scatter_add", "x, int dim, index, src",
     "values added along an axis, in a copy: scatter_add(x, 0, i, v)"},
    {"pointwise", "gelu", "x, const GELUOptions& options", "gelu, or with \"tanh\" its approximation: gelu(x, {.approximate = \"tanh\"})"},
    {"index", "scatter_reduce", "x, int dim, index, src, ScatterReduce reduce, bool include_self = true",
     "values combined by sum, prod, mean (not of booleans), amax or amin: scatter_reduce(x, 0, i, v, \"amax\")"},
    {"index", "index_select", "x, int dim, index", "slices in the order of the index: index_select(x, 0, i)"},
    {"index", "index_add", "x, int dim, index, source, double alpha = 1",
     "slices added at the index, in a copy: index_add(x, 0, i, v)", numbers},
    {"index", "index_copy", "x, int dim, index, source",
     "slices put at the index, in a copy: index_copy(x, 0, i, v)"},
    {"index", "index_reduce", "x, int dim, index, source, ScatterReduce reduce, bool include_self = true",
     "slices combined at the index by sum, prod, mean (not of booleans), amax or amin: index_reduce(x, 0, i, v, \"amax\")"},
    {"index", "index_fill", "x, int dim, index, Operand value",
     "slices at the index filled, in a copy: index_fill(x, 0, i, 0)"},
    {"index", "index_put", "x, tensors indices, Operand values, bool accumulate = false",
     "values put (or added) where x[{indices}] would read, in a copy: index_put(x, {i, j}, v)"},
    {"index", "masked_scatter", "x, mask, source",
     "elements of the source put where the mask holds, one after another: masked_scatter(x, m, v)"},
    {"index", "take", "x, index", "elements of the flattened tensor: take(x, i)"},
    {"index", "take_along_dim", "x, indices, int? dim = {}", "gather with broadcasting: take_along_dim(x, i, 1)"},
    {"index", "masked_fill", "x, mask, Operand value", "value where the mask holds: masked_fill(x, m, 0)"},
    {"index", "masked_select", "x, mask", "the elements where the mask holds: masked_select(x, m)"},
    {"index", "nonzero", "x", "indices of the non-zero elements, one row each: nonzero(x)", no_grad},
    {"index", "where", "condition", "indices where it is not 0, one tensor for each axis: where(x > 0)",
     {"std::vector<Tensor>", As::function, Grad::no, Takes::all}},
    {"index", "argwhere", "x", "nonzero: argwhere(x)", no_grad},
    {"index", "unravel_index", "indices, Shape shape",
     "places in the flattened tensor of a shape as one index for each axis: unravel_index(argmax(x), x.shape())",
     {"std::vector<Tensor>", As::function, Grad::no, Takes::integers}},
    {"index", "isin", "Operand elements, Operand test_elements, IsinOptions",
     "true where an element is one of the others: isin(x, y)", {.as = As::function, .grad = Grad::no}},
    {"index", "one_hot", "x, int num_classes = -1",
     "classes as rows of 0 and 1: one_hot(labels, 10)", {.as = As::function, .grad = Grad::no, .takes = Takes::integers}},
    {"index", "embedding", "indices, weight", "rows of a table: embedding(ids, w)", no_method},
    {"index", "sort", "x, int dim = -1, bool descending = false, bool stable = true",
     "sorted along an axis, with the order: sort(x)", two_results},
    {"index", "msort", "x", "sorted along the first axis: msort(x)"},
    {"index", "argsort", "x, int dim = -1, bool descending = false", "the order that sorts: argsort(x)", no_grad},
    {"index", "topk", "x, int k, int dim = -1, bool largest = true, bool sorted = true",
     "the k largest or smallest: topk(x, 3)", two_results},
    {"index", "kthvalue", "x, int k, int dim = -1, keepdim",
     "the k-th smallest, counted from 1: kthvalue(x, 2)", two_results},
    {"index", "unique", "x, UniqueOptions",
     "the different values or slices, sorted: unique(x).values", unique_result},
    {"index", "unique_consecutive", "x, UniqueConsecutiveOptions",
     "without repetitions of the neighbour before: unique_consecutive(x).values", unique_result},
    {"index", "searchsorted", "sorted, Operand values, SearchOptions",
     "where values would be inserted: searchsorted(edges, x)", {.as = As::function, .grad = Grad::no}},
    {"index", "bucketize", "x, boundaries, SearchOptions",
     "which bucket each value falls in: bucketize(x, edges)", no_grad},
    {"index", "bincount", "x, const Tensor& weights = {}, int minlength = 0",
     "how often each whole number occurs: bincount(x)", {.grad = Grad::no, .takes = Takes::integers}},
    {"index", "histogram", "x, int bins = 100, std::optional<std::pair<double, double>> range = {}",
     "counts in equal bins, and their edges: histogram(x, 10)", {.result = "HistogramResult", .grad = Grad::no}},
    {"index", "histc", "x, int bins = 100, double min = 0, double max = 0",
     "counts in equal bins from min to max, of all elements where the two are equal: histc(x, 10)", {.grad = Grad::no, .takes = Takes::floating}},

    {"pointwise", "polygamma", "int n, x", "n-th derivative of digamma: polygamma(2, x)", no_method},
    {"pointwise", "add", "Operand a, Operand b, Scalar alpha", "a + alpha * b: add(x, y, 0.5)", any_dtype},
    {"pointwise", "sub", "Operand a, Operand b, Scalar alpha", "a - alpha * b: sub(x, y, 0.5)", numbers},
    {"pointwise", "addcmul", "x, a, b, double value = 1", "x + value * a * b: addcmul(x, a, b)", numbers},
    {"pointwise", "addcdiv", "x, a, b, double value = 1", "x + value * a / b: addcdiv(x, a, b)"},
    {"pointwise", "float_power", "Operand x, Operand exponent", "pow in f64: float_power(x, 2)", any_dtype},
    {"pointwise", "isposinf", "x", "true where +infinity: isposinf(x)", {.grad = Grad::no, .takes = Takes::all}},
    {"pointwise", "isneginf", "x", "true where -infinity: isneginf(x)", {.grad = Grad::no, .takes = Takes::all}},
    {"pointwise", "nan_to_num", "x, double nan = 0, double? posinf = {}, double? neginf = {}",
     "NaN and infinities replaced: nan_to_num(x)", any_dtype},
    {"pointwise", "clamp", "Operand x, Operand min", "x held at or above min: clamp(x, 0)", any_dtype},
    {"pointwise", "clamp", "Operand x, const Bounds& bounds", "one bound or both: clamp(x, {.max = 1})", any_dtype},
    {"pointwise", "clip", "x, Operand min, Operand max", "clamp under its other name: clip(x, 0, 1)", any_dtype},
    {"pointwise", "clip", "x, Operand min", "clamp under its other name: clip(x, 0)", any_dtype},
    {"pointwise", "clip", "x, const Bounds& bounds", "clamp under its other name: clip(x, {.max = 1})", any_dtype},
    {"pointwise", "isclose", "x, other, CloseOptions", "true where within rtol and atol: isclose(a, b)", {.grad = Grad::no, .takes = Takes::all}},
    {"pointwise", "allclose", "x, other, CloseOptions",
     "whether all elements are close: allclose(a, b, {.rtol = 1e-4})", one_truth},
    {"pointwise", "is_nonzero", "x", "whether the one element is not 0: is_nonzero(x)", one_truth},
    {"pointwise", "equal", "x, other", "whether shapes and all elements are equal: equal(a, b)", one_truth},

    {"activation", "glu", "x, int dim = -1", "a * sigmoid(b) of the halves a and b of an axis: glu(x)"},
    {"activation", "softmin", "x, int dim", "softmax of -x: softmin(x, -1)"},
    {"activation", "prelu", "x, weight", "slopes below 0, one or one per channel: prelu(x, w)"},
    {"activation", "rrelu", "x, double lower = 1.0 / 8, double upper = 1.0 / 3, bool training = false",
     "slopes below 0 drawn between two while training, else their mean: rrelu(x)"},
    {"activation", "pixel_shuffle", "x, Int upscale_factor",
     "[.., c r^2, h, w] to [.., c, h r, w r]: pixel_shuffle(x, 2)", any_dtype},
    {"activation", "pixel_unshuffle", "x, Int downscale_factor",
     "[.., c, h r, w r] to [.., c r^2, h, w]: pixel_unshuffle(x, 2)", any_dtype},
    {"activation", "channel_shuffle", "x, Int groups",
     "channels of [n, c, ...], those of each group dealt out one by one: channel_shuffle(x, 2)", any_dtype},
    {"activation", "gumbel_softmax", "logits, double tau = 1, bool hard = false, int dim = -1",
     "softmax((logits + Gumbel noise) / tau); with `hard` one-hot, its gradient that of the soft one: gumbel_softmax(x)"},
    {"dropout", "dropout", "x, double p = 0.5, bool training = true",
     "zeroes elements with probability p, scales the others by 1 / (1 - p): dropout(x, 0.1, training)"},
    {"dropout", "feature_dropout", "x, double p = 0.5, bool training = true",
     "dropout of whole channels of [n, c, ...]: feature_dropout(x, 0.1)"},
    {"dropout", "alpha_dropout", "x, double p = 0.5, bool training = true",
     "keeps mean and variance of what selu gives: alpha_dropout(x, 0.1)"},
    {"dropout", "feature_alpha_dropout", "x, double p = 0.5, bool training = true",
     "alpha_dropout of whole channels: feature_alpha_dropout(x, 0.1)"},
    {"linear", "bilinear", "a, b, weight, const Tensor& bias = {}",
     "a^T W b + bias for each W of weight [out, in1, in2]: bilinear(a, b, w)", no_method},

    {"norm", "layer_norm", "x, Shape normalized_shape, const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5",
     "(x - mean) / sqrt(var + eps) * weight + bias over the last axes; undefined ones are left out: layer_norm(x, {768}, w, b)"},
    {"norm", "rms_norm", "x, Shape normalized_shape, const Tensor& weight = {}, double? eps = {}",
     "x / sqrt(mean(x^2) + eps) * weight over the last axes, eps of the dtype by default: rms_norm(x, {768}, w)"},
    {"norm", "group_norm", "x, Int num_groups, const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5",
     "channels of [n, c, ...] in groups, each normalised: group_norm(x, 8, w, b)"},
    {"norm", "batch_norm", "x, running_mean, running_var, const Tensor& weight = {}, const Tensor& bias = {}, "
     "bool training = false, double momentum = 0.1, double eps = 1e-5",
     "each channel of [n, c, ...] over the batch; training uses the batch's statistics and moves the running ones, else the "
     "running ones are used: batch_norm(x, mean, var, w, b, true)"},
    {"norm", "instance_norm", "x, const Tensor& running_mean = {}, const Tensor& running_var = {}, "
     "const Tensor& weight = {}, const Tensor& bias = {}, bool use_input_stats = true, double momentum = 0.1, double eps = 1e-5",
     "each channel of each sample; use_input_stats = false takes the running statistics: instance_norm(x)"},
    {"norm", "local_response_norm", "x, Int size, double alpha = 1e-4, double beta = 0.75, double k = 1",
     "x / (k + alpha * mean of x^2 over `size` neighbouring channels)^beta: local_response_norm(x, 5)"},
    {"norm", "normalize", "x, double p = 2, int dim = 1, double eps = 1e-12", "x / max(norm(x, p), eps): normalize(x)"},
    {"norm", "cosine_similarity", "a, b, int dim = 1, double eps = 1e-8",
     "cosine of the angle between slices: cosine_similarity(a, b)"},
    {"norm", "pairwise_distance", "a, b, double p = 2, double eps = 1e-6, keepdim",
     "p-norm of a - b + eps over the last axis: pairwise_distance(a, b)"},

    {"attention", "scaled_dot_product_attention", "q, k, v, AttentionOptions",
     "softmax(q k^T scale + mask) v over [..., heads, time, width], without the matrix of scores; a query that sees no key "
     "gets zeros: scaled_dot_product_attention(q, k, v, {.is_causal = true})"},
    {"attention", "rotary_positions", "x, RotaryOptions",
     "pairs of features of [..., time, width] turned by angles that grow with the position: rotary_positions(q)"},

    {"conv", "conv#d", "x, weight, const Tensor& bias = {}, ConvOptions",
     "x [n, in, ...] or [in, ...] with weight [out, in / groups, k...]: conv#d(x, w, b, {.stride = 2, .padding = 1})"},
    {"conv", "conv_transpose#d", "x, weight, const Tensor& bias = {}, ConvTransposeOptions",
     "the gradient of conv#d by its input as an op, weight [in, out / groups, k...]: conv_transpose#d(x, w, b, {.stride = 2})"},

    {"pool", "max_pool#d", "x, PerAxis kernel_size, MaxPoolOptions",
     "the largest of each window; padding never wins: max_pool#d(x, 3, {.stride = 2, .padding = 1})"},
    {"pool", "max_pool#d_with_indices", "x, PerAxis kernel_size, MaxPoolOptions",
     "and where it stands in the plane of the pooled axes, the first of equals: auto [y, i] = max_pool#d_with_indices(x, 2)", two_results},
    {"pool", "avg_pool#d", "x, PerAxis kernel_size, AvgPoolOptions",
     "the mean of each window: avg_pool#d(x, 3, {.stride = 2, .count_include_pad = false})"},
    {"pool", "lp_pool#d", "x, double norm_type, PerAxis kernel_size, LPPoolOptions",
     "the p-norm of each window, without the absolute value, as PyTorch has it: lp_pool#d(x, 2, 3)"},
    {"pool", "adaptive_avg_pool#d", "x, PerAxis output_size",
     "the mean of windows that give this size, -1 the input's; 1 pools globally: adaptive_avg_pool#d(x, 7)"},
    {"pool", "adaptive_max_pool#d", "x, PerAxis output_size",
     "the largest of windows that give this size: adaptive_max_pool#d(x, 7)"},
    {"pool", "adaptive_max_pool#d_with_indices", "x, PerAxis output_size",
     "and where it stands: adaptive_max_pool#d_with_indices(x, 7)", two_results},
    {"pool", "max_unpool#d", "x, indices, PerAxis kernel_size, MaxUnpoolOptions",
     "values back where max pooling found them, 0 elsewhere: max_unpool#d(y, i, 2)"},
    {"pool", "fractional_max_pool2d", "x, PerAxis kernel_size, const FractionalPoolOptions& options",
     "the largest of windows at drawn places of [n, c, h, w]: fractional_max_pool2d(x, 3, {.output_ratio = 0.7})"},
    {"pool", "fractional_max_pool3d", "x, PerAxis kernel_size, const FractionalPoolOptions& options",
     "likewise of [n, c, d, h, w]: fractional_max_pool3d(x, 2, {.output_size = 3})"},
    {"pool", "fractional_max_pool2d_with_indices", "x, PerAxis kernel_size, const FractionalPoolOptions& options",
     "and where it stands in the plane: fractional_max_pool2d_with_indices(x, 3, {.output_ratio = 0.7})", two_results},
    {"pool", "fractional_max_pool3d_with_indices", "x, PerAxis kernel_size, const FractionalPoolOptions& options",
     "and where it stands in the volume: fractional_max_pool3d_with_indices(x, 2, {.output_size = 3})", two_results},

    {"resample", "interpolate", "x, const InterpolateOptions& options",
     "[n, c, ...] with another resolution: interpolate(x, {.scale_factor = 2, .mode = \"bilinear\"})"},
    {"resample", "grid_sample", "x, grid, GridSampleOptions",
     "x [n, c, h, w] at the places of grid [n, y, x, 2], or [n, c, d, h, w] at [n, z, y, x, 3]; a place is (x, y[, z]), -1 and 1 "
     "being the ends of an axis: grid_sample(x, affine_grid(theta, x.shape()))"},
    {"resample", "affine_grid", "theta, Shape size, bool align_corners = false",
     "places of an output [n, c, h, w] under theta [n, 2, 3], or [n, c, d, h, w] under [n, 3, 4]: affine_grid(theta, x.shape())"},
    {"resample", "im2col", "x, PerAxis kernel_size, ColumnOptions",
     "windows of [n, c, h, w] or [c, h, w] as columns [n, c * window, places]: im2col(x, {3, 3}, {.padding = 1})", any_dtype},
    {"resample", "col2im", "columns, PerAxis output_size, PerAxis kernel_size, ColumnOptions",
     "the transpose of im2col, columns added up where windows overlap: col2im(columns, {8, 8}, 3)", any_dtype},

    {"index", "embedding", "indices, weight, const EmbeddingOptions& options",
     "rows of a table, as its options say: embedding(ids, w, {.padding_idx = 0})", no_method},
    {"index", "embedding_bag", "indices, weight, const Tensor& offsets = {}, EmbeddingBagOptions, const Tensor& per_sample_weights = {}",
     "rows reduced in bags: the rows of indices [bags, n], or from `offsets` on in indices [n]; an empty bag gives 0, the "
     "weights need mode sum: embedding_bag(ids, w, offsets)", {.as = As::function, .takes = Takes::numeric}},

    {"loss", "mse_loss", "input, target, LossOptions", "squares of the differences: mse_loss(model(x), y)"},
    {"loss", "l1_loss", "input, target, LossOptions", "absolute differences: l1_loss(model(x), y)"},
    {"loss", "smooth_l1_loss", "input, target, SmoothL1LossOptions",
     "squares up to beta, then lines: smooth_l1_loss(x, y, {.beta = 0.5})"},
    {"loss", "huber_loss", "input, target, HuberLossOptions",
     "squares up to delta, then lines of that slope: huber_loss(x, y, {.delta = 2})"},
    {"loss", "cross_entropy", "input, target, CrossEntropyOptions",
     "of scores [N, C, ...] or [C] and labels [N, ...] or []; a floating target of the scores' shape holds probabilities: cross_entropy(logits, labels)"},
    {"loss", "nll_loss", "input, target, NLLLossOptions",
     "of log probabilities and labels: nll_loss(log_softmax(x, 1), labels)"},
    {"loss", "multi_margin_loss", "input, target, MultiMarginLossOptions",
     "what each class lacks of standing a margin below the label's: multi_margin_loss(scores, labels)"},
    {"loss", "multilabel_margin_loss", "input, target, LossOptions",
     "likewise of several labels, listed (i64) until the first -1: multilabel_margin_loss(x, tensor({3, 0, -1, 1}))"},
    {"loss", "multilabel_soft_margin_loss", "input, target, WeightedLossOptions",
     "binary cross-entropy of every class, 1 or 0: multilabel_soft_margin_loss(x, y)"},
    {"loss", "binary_cross_entropy", "input, target, WeightedLossOptions",
     "of probabilities: binary_cross_entropy(sigmoid(x), y)"},
    {"loss", "binary_cross_entropy_with_logits", "input, target, BCEWithLogitsOptions",
     "of scores: binary_cross_entropy_with_logits(x, y, {.pos_weight = w})"},
    {"loss", "sigmoid_focal_loss", "input, target, FocalLossOptions",
     "binary cross-entropy, easy answers weighed down: sigmoid_focal_loss(x, y, {.reduction = Reduce::mean})"},
    {"loss", "kl_div", "input, target, KLDivOptions",
     "divergence of log probabilities from a target: kl_div(log_softmax(x, 1), p, {.batchmean = true})"},
    {"loss", "gaussian_kl", "mean, log_variance, LossOptions",
     "divergence of N(mean, e^log_variance) from N(0, 1), of a VAE: gaussian_kl(mean, log_variance, {.reduction = Reduce::sum})"},
    {"loss", "gaussian_nll_loss", "input, target, var, GaussianNLLOptions",
     "of a mean and a variance: gaussian_nll_loss(mean, y, variance)"},
    {"loss", "poisson_nll_loss", "input, target, PoissonNLLOptions",
     "of (the logarithm of) a rate: poisson_nll_loss(log_rate, counts)"},
    {"loss", "hinge_embedding_loss", "input, target, HingeEmbeddingOptions",
     "a distance, or what it lacks of the margin, for targets 1 and -1: hinge_embedding_loss(distance, y)"},
    {"loss", "soft_margin_loss", "input, target, LossOptions",
     "log(1 + e^(-target x)) for targets 1 and -1: soft_margin_loss(x, y)"},
    {"loss", "margin_ranking_loss", "input1, input2, target, MarginOptions",
     "which of two is to be larger, 1 or -1: margin_ranking_loss(a, b, y)"},
    {"loss", "cosine_embedding_loss", "input1, input2, target, MarginOptions",
     "whether two are to be alike, 1 or -1: cosine_embedding_loss(a, b, y)"},
    {"loss", "triplet_margin_loss", "anchor, positive, negative, TripletMarginOptions",
     "the negative is to be further away by a margin: triplet_margin_loss(a, p, n)"},
    {"loss", "triplet_margin_with_distance_loss", "anchor, positive, negative, TripletDistanceOptions",
     "likewise by a distance of one's own: triplet_margin_with_distance_loss(a, p, n, {.distance_function = f})"},
    {"loss", "ctc_loss", "log_probs, targets, lengths input_lengths, lengths target_lengths, CTCLossOptions",
     "of unaligned sequences: log probabilities [T, N, C], targets [N, S] or all in a row: "
     "ctc_loss(log_softmax(x, 2), targets, input_lengths, target_lengths)"},

    {"recurrent", "rnn_tanh", "x, hx, tensors params, RecurrenceOptions",
     "layers of h = tanh(w_ih x + b_ih + w_hh h + b_hh) over [time, batch, inputs] or [time, inputs], from hx [layers * "
     "directions, batch, size], zeros if undefined; params are the weights of each: "
     "auto [y, h] = rnn_tanh(x, h0, {w_ih, w_hh, b_ih, b_hh})",
     {"RecurrentOutput"}},
    {"recurrent", "rnn_relu", "x, hx, tensors params, RecurrenceOptions",
     "rnn_tanh with relu: auto [y, h] = rnn_relu(x, h0, {w_ih, w_hh}, {.has_biases = false})", {"RecurrentOutput"}},
    {"recurrent", "gru", "x, hx, tensors params, RecurrenceOptions",
     "likewise of gated units, rows r, z, n of the weights: auto [y, h] = gru(x, h0, {w_ih, w_hh, b_ih, b_hh})",
     {"RecurrentOutput"}},
    {"recurrent", "lstm", "x, tensors hx, tensors params, RecurrenceOptions",
     "likewise of long short-term memory, rows i, f, g, o, from h and c; a fifth param projects h: "
     "auto [y, h, c] = lstm(x, {h0, c0}, {w_ih, w_hh, b_ih, b_hh})", {"LSTMOutput"}},
    {"recurrent", "rnn_tanh_cell", "x, hx, w_ih, w_hh, const Tensor& b_ih = {}, const Tensor& b_hh = {}",
     "a step of rnn_tanh, x [batch, inputs] or [inputs]: h = rnn_tanh_cell(x, h, w_ih, w_hh, b_ih, b_hh)"},
    {"recurrent", "rnn_relu_cell", "x, hx, w_ih, w_hh, const Tensor& b_ih = {}, const Tensor& b_hh = {}",
     "a step of rnn_relu: h = rnn_relu_cell(x, h, w_ih, w_hh)"},
    {"recurrent", "gru_cell", "x, hx, w_ih, w_hh, const Tensor& b_ih = {}, const Tensor& b_hh = {}",
     "a step of gru: h = gru_cell(x, h, w_ih, w_hh, b_ih, b_hh)"},
    {"recurrent", "lstm_cell", "x, tensors hx, w_ih, w_hh, const Tensor& b_ih = {}, const Tensor& b_hh = {}",
     "a step of lstm: auto [h1, c1] = lstm_cell(x, {h, c}, w_ih, w_hh)", {"LSTMState"}},

    {"sequence", "pack_padded_sequence", "x, lengths lengths, bool batch_first = false",
     "[time, batch, ...] without its padding, lengths in any order: pack_padded_sequence(x, {5, 3, 2})", {"PackedSequence"}},
    {"sequence", "pad_packed_sequence", "const PackedSequence& packed, bool batch_first = false, double padding_value = 0",
     "the way back: auto [x, lengths] = pad_packed_sequence(packed)", {"PaddedSequence"}},
    {"sequence", "pad_sequence", "tensors sequences, PadSequenceOptions",
     "sequences [length, ...] as one tensor [time, batch, ...], the shorter ones filled up: pad_sequence({a, b, c})"},
    {"sequence", "unpad_sequence", "padded, lengths lengths, bool batch_first = false",
     "the way back: unpad_sequence(padded, {5, 3, 2})", many_results},
    {"sequence", "pack_sequence", "tensors sequences", "sequences of any lengths, packed: pack_sequence({a, b, c})", {"PackedSequence"}},
};
static_assert(([] { for (const Function& f : functions) (void)f.of_group(); }(), true), "there is such a group");
// clang-format on

// f(function, name, doc) for every op of the list.
template <class F> void for_each_function(F f) {
  const auto with = [](std::string text, char digit) {
    for (char& c : text)
      if (c == '#') c = digit;
    return text;
  };
  for (const Function& one : functions)
    for (char digit : {'1', '2', '3'}) {
      f(one, with(one.name, digit), with(one.doc, digit));
      if (std::string_view(one.name).find('#') == std::string_view::npos) break;
    }
}

}  // namespace volta
