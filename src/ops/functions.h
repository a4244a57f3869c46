// Every op that is not pointwise, declared once: functions, methods, the table in the docs and the tests' op lists come
// from here. Pointwise ops declare themselves in point_*.h.
#pragma once

namespace volta {

enum class As { both, function };  // `both`: also a method, called on the first parameter

// How often an op can be differentiated: any number of times, or not at all (it then refuses inputs that require grad,
// unless its result is of integers or booleans).
enum class Grad { yes, no };

struct Also {
  const char* result = "Tensor";
  As as = As::both;
  Grad grad = Grad::yes;
};
inline constexpr Also no_method{.as = As::function}, no_grad{.grad = Grad::no}, two_results{"ValuesIndices"};
inline constexpr Also many_results{"std::vector<Tensor>"}, one_truth{"bool", As::both, Grad::no};

struct Function {
  const char *group, *name, *parameters, *doc;
  Also also = {};
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
    {"ints", "const std::vector<int64_t>&"},
    {"tensors", "const std::vector<Tensor>&"},
    {"Shape", "const Shape&"},
    {"Operand", "const Operand&"},
    {"string", "const std::string&"},
    {"Device", "const Device&"},
    {"Ints", "const Ints&"},
    {"ScatterReduce", "const Choice<ScatterReduce>&"},
};

// A line or two per op read best.
// clang-format off
inline constexpr Function functions[] = {
    {"reduce", "sum", "x, Axes dim = {}, keepdim", "sum over axes; integers sum as i64: sum(x, {0, 2})"},
    {"reduce", "mean", "x, Axes dim = {}, keepdim", "arithmetic mean over axes: mean(x, -1, true)"},
    {"reduce", "prod", "x, Axes dim = {}, keepdim", "product over axes: prod(x)"},
    {"reduce", "nansum", "x, Axes dim = {}, keepdim", "sum with NaN counted as 0: nansum(x)"},
    {"reduce", "amax", "x, Axes dim = {}, keepdim",
     "largest over axes; tied elements share the gradient: amax(x, {1, 2})"},
    {"reduce", "amin", "x, Axes dim = {}, keepdim", "smallest over axes; tied elements share the gradient: amin(x, 0)"},
    {"reduce", "max", "x", "largest element: max(x)"},
    {"reduce", "min", "x", "smallest element: min(x)"},
    {"reduce", "max", "x, int dim, keepdim",
     "largest along an axis and where it first stands: auto [v, i] = max(x, 1)", two_results},
    {"reduce", "min", "x, int dim, keepdim",
     "smallest along an axis and where it first stands: auto [v, i] = min(x, 1)", two_results},
    {"reduce", "argmax", "x, int? dim = {}, keepdim",
     "index of the largest; of the flattened tensor without an axis: argmax(x, 1)", no_grad},
    {"reduce", "argmin", "x, int? dim = {}, keepdim", "index of the smallest: argmin(x, 1)", no_grad},
    {"reduce", "any", "x, Axes dim = {}, keepdim", "true where any element is non-zero: any(x, 0)", no_grad},
    {"reduce", "all", "x, Axes dim = {}, keepdim", "true where all elements are non-zero: all(x)", no_grad},
    {"reduce", "count_nonzero", "x, Axes dim = {}", "how many elements are not 0: count_nonzero(x, 1)", no_grad},
    {"reduce", "var", "x, Axes dim = {}, VarOptions", "variance over axes: var(x, 1, {.correction = 0})"},
    {"reduce", "std_dev", "x, Axes dim = {}, VarOptions",
     "standard deviation over axes; the method is x.std(…)", no_method},
    {"reduce", "norm", "x, double p = 2, Axes dim = {}, keepdim",
     "p-norm over axes, p from 0 to infinity: norm(x, 1, -1)"},
    {"reduce", "logsumexp", "x, Axes dim, keepdim", "log of the sum of exponentials, stable: logsumexp(x, 1)"},
    {"reduce", "median", "x", "the lower median of all elements: median(x)"},
    {"reduce", "median", "x, int dim, keepdim",
     "the lower median along an axis and where it stands: median(x, 1)", two_results},
    {"rows", "softmax", "x, int dim", "exponentials that sum to 1 along an axis: softmax(x, -1)"},
    {"rows", "log_softmax", "x, int dim", "log of softmax, stable: log_softmax(x, -1)"},
    {"scan", "cumsum", "x, int dim", "running sum along an axis: cumsum(x, 1)"},
    {"scan", "cumprod", "x, int dim", "running product along an axis: cumprod(x, 1)"},
    {"scan", "cummax", "x, int dim", "running maximum and where it stands: cummax(x, 0)", two_results},
    {"scan", "cummin", "x, int dim", "running minimum and where it stands: cummin(x, 0)", two_results},
    {"scan", "logcumsumexp", "x, int dim", "running logsumexp along an axis: logcumsumexp(x, 0)"},
    {"scan", "diff", "x, int n = 1, int dim = -1", "n-th difference of neighbours: diff(x)"},

    {"linear", "matmul", "x, other", "matrix product of vectors, matrices or batches, with broadcasting: matmul(a, b)"},
    {"linear", "mm", "x, other", "matrix product of two matrices: mm(a, b)"},
    {"linear", "bmm", "x, other", "matrix product of two batches of matrices: bmm(a, b)"},
    {"linear", "mv", "x, vector", "matrix times vector: mv(m, v)"},
    {"linear", "dot", "x, other", "inner product of two vectors: dot(a, b)"},
    {"linear", "outer", "x, other", "outer product of two vectors: outer(a, b)"},
    {"linear", "addmm", "x, a, b, double beta = 1, double alpha = 1", "beta * x + alpha * (a @ b): addmm(bias, a, b)"},
    {"linear", "linear", "x, weight, const Tensor& bias = {}, LinearOptions",
     "x @ weight^T + bias, with an activation fused in: linear(x, w, b, {.activation = \"relu\"})", no_method},
    {"linear", "tensordot", "x, other, Ints dims_x, Ints dims_other",
     "contraction of the paired axes: tensordot(a, b, {1}, {0})", no_method},
    {"linear", "tensordot", "x, other, int dims",
     "contraction of the last with the first axes: tensordot(a, b, 1)", no_method},
    {"linear", "kron", "x, other", "Kronecker product: kron(a, b)"},
    {"linear", "trace", "x", "sum of the main diagonal: trace(m)"},
    {"linear", "cross", "x, other, int dim = -1", "cross product of 3-vectors: cross(a, b)"},
    {"linear", "einsum", "string equation, tensors operands",
     "Einstein summation: einsum(\"bij,bjk->bik\", {a, b})", no_method},

    {"view", "reshape", "x, Shape shape",
     "another shape of the same elements, a view where possible; one size may be -1: reshape(x, {3, -1})"},
    {"view", "view", "x, Shape shape", "like reshape, but an error where a copy would be needed: x.view({3, -1})"},
    {"view", "view_as", "x, other", "view in another's shape: x.view_as(y)"},
    {"view", "permute", "x, Shape dims", "axes in another order: permute(x, {2, 0, 1})"},
    {"view", "transpose", "x, int dim0, int dim1", "two axes swapped: transpose(x, 0, 1)"},
    {"view", "t", "x", "the transposed matrix: t(x)"},
    {"view", "mT", "x", "the last two axes swapped: x.mT()"},
    {"view", "movedim", "x, Axes source, Axes destination", "axes moved to new places: movedim(x, 0, -1)"},
    {"view", "expand", "x, Shape shape", "size-1 axes repeated without copying; -1 keeps a size: expand(x, {4, -1})"},
    {"view", "expand_as", "x, other", "expanded to another's shape: expand_as(x, y)"},
    {"view", "broadcast_to", "x, Shape shape", "expand: broadcast_to(x, {4, 3})"},
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
    {"shape", "cat", "tensors tensors, int dim = 0", "joined along an axis: cat({a, b}, 1)", no_method},
    {"shape", "stack", "tensors tensors, int dim = 0", "joined along a new axis: stack({a, b})", no_method},
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
     "values combined by sum, prod, mean, amax or amin: scatter_reduce(x, 0, i, v, \"amax\")"},
    {"index", "index_select", "x, int dim, index", "slices in the order of the index: index_select(x, 0, i)"},
    {"index", "index_add", "x, int dim, index, source, double alpha = 1",
     "slices added at the index, in a copy: index_add(x, 0, i, v)"},
    {"index", "take", "x, index", "elements of the flattened tensor: take(x, i)"},
    {"index", "take_along_dim", "x, indices, int? dim = {}", "gather with broadcasting: take_along_dim(x, i, 1)"},
    {"index", "masked_fill", "x, mask, Operand value", "value where the mask holds: masked_fill(x, m, 0)"},
    {"index", "masked_select", "x, mask", "the elements where the mask holds: masked_select(x, m)"},
    {"index", "nonzero", "x", "indices of the non-zero elements, one row each: nonzero(x)", no_grad},
    {"index", "one_hot", "x, int num_classes = -1",
     "classes as rows of 0 and 1: one_hot(labels, 10)", {.as = As::function, .grad = Grad::no}},
    {"index", "embedding", "weight, indices", "rows of a table: embedding(w, ids)", no_method},
    {"index", "sort", "x, int dim = -1, bool descending = false, bool stable = true",
     "sorted along an axis, with the order: sort(x)", two_results},
    {"index", "argsort", "x, int dim = -1, bool descending = false", "the order that sorts: argsort(x)", no_grad},
    {"index", "topk", "x, int k, int dim = -1, bool largest = true, bool sorted = true",
     "the k largest or smallest: topk(x, 3)", two_results},
    {"index", "kthvalue", "x, int k, int dim = -1, keepdim",
     "the k-th smallest, counted from 1: kthvalue(x, 2)", two_results},
    {"index", "unique", "x, UniqueOptions",
     "the different values, sorted: unique(x).values", {.result = "UniqueResult", .grad = Grad::no}},
    {"index", "searchsorted", "sorted, Operand values, SearchOptions",
     "where values would be inserted: searchsorted(edges, x)", {.as = As::function, .grad = Grad::no}},
    {"index", "bucketize", "x, boundaries, SearchOptions",
     "which bucket each value falls in: bucketize(x, edges)", no_grad},
    {"index", "bincount", "x, const Tensor& weights = {}, int minlength = 0",
     "how often each whole number occurs: bincount(x)", no_grad},
    {"index", "histogram", "x, int bins = 100, std::optional<std::pair<double, double>> range = {}",
     "counts in equal bins, and their edges: histogram(x, 10)", {.result = "HistogramResult", .grad = Grad::no}},

    {"pointwise", "polygamma", "int n, x", "n-th derivative of digamma: polygamma(2, x)", no_method},
    {"pointwise", "addcmul", "x, a, b, double value = 1", "x + value * a * b: addcmul(x, a, b)"},
    {"pointwise", "addcdiv", "x, a, b, double value = 1", "x + value * a / b: addcdiv(x, a, b)"},
    {"pointwise", "nan_to_num", "x, double nan = 0, double? posinf = {}, double? neginf = {}",
     "NaN and infinities replaced: nan_to_num(x)"},
    {"pointwise", "clip", "x, Operand min, Operand max", "clamp under its other name: clip(x, 0, 1)"},
    {"pointwise", "isclose", "x, other, CloseOptions", "true where within rtol and atol: isclose(a, b)", no_grad},
    {"pointwise", "allclose", "x, other, CloseOptions",
     "whether all elements are close: allclose(a, b, {.rtol = 1e-4})", one_truth},
    {"pointwise", "equal", "x, other", "whether shapes and all elements are equal: equal(a, b)", one_truth},
};
// clang-format on

}  // namespace volta
