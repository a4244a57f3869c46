// Every op that is not pointwise, declared once: functions, methods, the table in the docs and the tests' op lists come
// from here. Pointwise ops declare themselves in point_*.h.
#pragma once

namespace volta {

enum class As { both, function };  // `both`: also a method, called on the first parameter

// How often an op can be differentiated: any number of times, or not at all (it then refuses inputs that require grad,
// unless its result is of integers or booleans).
enum class Grad { yes, no };

struct Function {
  const char* group;
  const char* result;
  const char* name;
  const char* parameters;
  const char* doc;
  As as = As::both;
  Grad grad = Grad::yes;
};

// One line per op reads best.
// clang-format off
inline constexpr Function functions[] = {
    {"reduce", "Tensor", "sum", "const Tensor& x, const Axes& dim = {}, bool keepdim = false", "sum over axes; integers sum as i64: sum(x, {0, 2})"},
    {"reduce", "Tensor", "mean", "const Tensor& x, const Axes& dim = {}, bool keepdim = false", "arithmetic mean over axes: mean(x, -1, true)"},
    {"reduce", "Tensor", "prod", "const Tensor& x, const Axes& dim = {}, bool keepdim = false", "product over axes: prod(x)"},
    {"reduce", "Tensor", "nansum", "const Tensor& x, const Axes& dim = {}, bool keepdim = false", "sum with NaN counted as 0: nansum(x)"},
    {"reduce", "Tensor", "amax", "const Tensor& x, const Axes& dim = {}, bool keepdim = false", "largest over axes; tied elements share the gradient: amax(x, {1, 2})"},
    {"reduce", "Tensor", "amin", "const Tensor& x, const Axes& dim = {}, bool keepdim = false", "smallest over axes; tied elements share the gradient: amin(x, 0)"},
    {"reduce", "Tensor", "max", "const Tensor& x", "largest element: max(x)"},
    {"reduce", "Tensor", "min", "const Tensor& x", "smallest element: min(x)"},
    {"reduce", "ValuesIndices", "max", "const Tensor& x, int64_t dim, bool keepdim = false", "largest along an axis and where it first stands: auto [v, i] = max(x, 1)"},
    {"reduce", "ValuesIndices", "min", "const Tensor& x, int64_t dim, bool keepdim = false", "smallest along an axis and where it first stands: auto [v, i] = min(x, 1)"},
    {"reduce", "Tensor", "argmax", "const Tensor& x, std::optional<int64_t> dim = {}, bool keepdim = false", "index of the largest; of the flattened tensor without an axis: argmax(x, 1)", As::both, Grad::no},
    {"reduce", "Tensor", "argmin", "const Tensor& x, std::optional<int64_t> dim = {}, bool keepdim = false", "index of the smallest: argmin(x, 1)", As::both, Grad::no},
    {"reduce", "Tensor", "any", "const Tensor& x, const Axes& dim = {}, bool keepdim = false", "true where any element is non-zero: any(x, 0)", As::both, Grad::no},
    {"reduce", "Tensor", "all", "const Tensor& x, const Axes& dim = {}, bool keepdim = false", "true where all elements are non-zero: all(x)", As::both, Grad::no},
    {"reduce", "Tensor", "count_nonzero", "const Tensor& x, const Axes& dim = {}", "how many elements are not 0: count_nonzero(x, 1)", As::both, Grad::no},
    {"reduce", "Tensor", "var", "const Tensor& x, const Axes& dim = {}, const VarOptions& options = {}", "variance over axes: var(x, 1, {.correction = 0})"},
    {"reduce", "Tensor", "std_dev", "const Tensor& x, const Axes& dim = {}, const VarOptions& options = {}", "standard deviation over axes; the method is x.std(…)", As::function},
    {"reduce", "Tensor", "norm", "const Tensor& x, double p = 2, const Axes& dim = {}, bool keepdim = false", "p-norm over axes, p from 0 to infinity: norm(x, 1, -1)"},
    {"reduce", "Tensor", "logsumexp", "const Tensor& x, const Axes& dim, bool keepdim = false", "log of the sum of exponentials, stable: logsumexp(x, 1)"},
    {"reduce", "Tensor", "median", "const Tensor& x", "the lower median of all elements: median(x)"},
    {"reduce", "ValuesIndices", "median", "const Tensor& x, int64_t dim, bool keepdim = false", "the lower median along an axis and where it stands: median(x, 1)"},
    {"rows", "Tensor", "softmax", "const Tensor& x, int64_t dim", "exponentials that sum to 1 along an axis: softmax(x, -1)"},
    {"rows", "Tensor", "log_softmax", "const Tensor& x, int64_t dim", "log of softmax, stable: log_softmax(x, -1)"},
    {"scan", "Tensor", "cumsum", "const Tensor& x, int64_t dim", "running sum along an axis: cumsum(x, 1)"},
    {"scan", "Tensor", "cumprod", "const Tensor& x, int64_t dim", "running product along an axis: cumprod(x, 1)"},
    {"scan", "ValuesIndices", "cummax", "const Tensor& x, int64_t dim", "running maximum and where it stands: cummax(x, 0)"},
    {"scan", "ValuesIndices", "cummin", "const Tensor& x, int64_t dim", "running minimum and where it stands: cummin(x, 0)"},
    {"scan", "Tensor", "logcumsumexp", "const Tensor& x, int64_t dim", "running logsumexp along an axis: logcumsumexp(x, 0)"},
    {"scan", "Tensor", "diff", "const Tensor& x, int64_t n = 1, int64_t dim = -1", "n-th difference of neighbours: diff(x)"},

    {"linear", "Tensor", "matmul", "const Tensor& x, const Tensor& other", "matrix product of vectors, matrices or batches, with broadcasting: matmul(a, b)"},
    {"linear", "Tensor", "mm", "const Tensor& x, const Tensor& other", "matrix product of two matrices: mm(a, b)"},
    {"linear", "Tensor", "bmm", "const Tensor& x, const Tensor& other", "matrix product of two batches of matrices: bmm(a, b)"},
    {"linear", "Tensor", "mv", "const Tensor& x, const Tensor& vector", "matrix times vector: mv(m, v)"},
    {"linear", "Tensor", "dot", "const Tensor& x, const Tensor& other", "inner product of two vectors: dot(a, b)"},
    {"linear", "Tensor", "outer", "const Tensor& x, const Tensor& other", "outer product of two vectors: outer(a, b)"},
    {"linear", "Tensor", "addmm", "const Tensor& x, const Tensor& a, const Tensor& b, double beta = 1, double alpha = 1", "beta * x + alpha * (a @ b): addmm(bias, a, b)"},
    {"linear", "Tensor", "linear", "const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const LinearOptions& options = {}", "x @ weight^T + bias, with an activation fused in: linear(x, w, b, {.activation = \"relu\"})", As::function},
    {"linear", "Tensor", "tensordot", "const Tensor& x, const Tensor& other, const std::vector<int64_t>& dims_x, const std::vector<int64_t>& dims_other", "contraction of the paired axes: tensordot(a, b, {1}, {0})", As::function},
    {"linear", "Tensor", "tensordot", "const Tensor& x, const Tensor& other, int64_t dims", "contraction of the last with the first axes: tensordot(a, b, 1)", As::function},
    {"linear", "Tensor", "kron", "const Tensor& x, const Tensor& other", "Kronecker product: kron(a, b)"},
    {"linear", "Tensor", "trace", "const Tensor& x", "sum of the main diagonal: trace(m)"},
    {"linear", "Tensor", "cross", "const Tensor& x, const Tensor& other, int64_t dim = -1", "cross product of 3-vectors: cross(a, b)"},
    {"linear", "Tensor", "einsum", "const std::string& equation, const std::vector<Tensor>& operands", "Einstein summation: einsum(\"bij,bjk->bik\", {a, b})", As::function},

    {"view", "Tensor", "reshape", "const Tensor& x, const Shape& shape", "another shape of the same elements, a view where possible; one size may be -1: reshape(x, {3, -1})"},
    {"view", "Tensor", "view", "const Tensor& x, const Shape& shape", "like reshape, but an error where a copy would be needed: x.view({3, -1})"},
    {"view", "Tensor", "permute", "const Tensor& x, const Shape& dims", "axes in another order: permute(x, {2, 0, 1})"},
    {"view", "Tensor", "transpose", "const Tensor& x, int64_t dim0, int64_t dim1", "two axes swapped: transpose(x, 0, 1)"},
    {"view", "Tensor", "t", "const Tensor& x", "the transposed matrix: t(x)"},
    {"view", "Tensor", "mT", "const Tensor& x", "the last two axes swapped: x.mT()"},
    {"view", "Tensor", "movedim", "const Tensor& x, const Axes& source, const Axes& destination", "axes moved to new places: movedim(x, 0, -1)"},
    {"view", "Tensor", "expand", "const Tensor& x, const Shape& shape", "size-1 axes repeated without copying; -1 keeps a size: expand(x, {4, -1})"},
    {"view", "Tensor", "expand_as", "const Tensor& x, const Tensor& other", "expanded to another's shape: expand_as(x, y)"},
    {"view", "Tensor", "broadcast_to", "const Tensor& x, const Shape& shape", "expand: broadcast_to(x, {4, 3})"},
    {"view", "Tensor", "squeeze", "const Tensor& x, const Axes& dim = {}", "axes of size 1 dropped: squeeze(x, 0)"},
    {"view", "Tensor", "unsqueeze", "const Tensor& x, int64_t dim", "a new axis of size 1: unsqueeze(x, -1)"},
    {"view", "Tensor", "flatten", "const Tensor& x, int64_t start_dim = 0, int64_t end_dim = -1", "axes joined into one: flatten(x, 1)"},
    {"view", "Tensor", "unflatten", "const Tensor& x, int64_t dim, const Shape& sizes", "an axis split into several: unflatten(x, 1, {2, -1})"},
    {"view", "Tensor", "narrow", "const Tensor& x, int64_t dim, int64_t start, int64_t length", "a range of one axis: narrow(x, 0, 2, 3)"},
    {"view", "Tensor", "slice", "const Tensor& x, int64_t dim, std::optional<int64_t> begin, std::optional<int64_t> end, int64_t step = 1", "a Python slice of one axis, any step: slice(x, 0, 1, {}, 2)"},
    {"view", "Tensor", "select", "const Tensor& x, int64_t dim, int64_t index", "one index of one axis: select(x, 0, -1)"},
    {"view", "Tensor", "flip", "const Tensor& x, const Axes& dims", "axes reversed: flip(x, {1})"},
    {"view", "Tensor", "diagonal", "const Tensor& x, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1", "a diagonal as the last axis: diagonal(x, 1)"},
    {"view", "Tensor", "unfold", "const Tensor& x, int64_t dim, int64_t size, int64_t step", "sliding windows as a new last axis: unfold(x, 0, 3, 1)"},
    {"view", "Tensor", "as_strided", "const Tensor& x, const Shape& size, const Shape& stride, std::optional<int64_t> storage_offset = {}", "any layout within the storage: as_strided(x, {2, 2}, {1, 2})"},
    {"view", "std::vector<Tensor>", "split", "const Tensor& x, int64_t split_size, int64_t dim = 0", "pieces of a size, the last may be smaller: split(x, 2)"},
    {"view", "std::vector<Tensor>", "split", "const Tensor& x, const std::vector<int64_t>& sizes, int64_t dim = 0", "pieces of given sizes: split(x, std::vector<int64_t>{1, 3})"},
    {"view", "std::vector<Tensor>", "chunk", "const Tensor& x, int64_t chunks, int64_t dim = 0", "about equal pieces: chunk(x, 3)"},
    {"view", "std::vector<Tensor>", "unbind", "const Tensor& x, int64_t dim = 0", "one tensor per index of an axis: unbind(x)"},

    {"shape", "Tensor", "contiguous", "const Tensor& x", "x itself if row-major, else a row-major copy: contiguous(x)"},
    {"shape", "Tensor", "clone", "const Tensor& x", "a copy: clone(x)"},
    {"shape", "Tensor", "to", "const Tensor& x, DType dtype", "another dtype; x itself if it has it already: x.to(f64)"},
    {"shape", "Tensor", "to", "const Tensor& x, const Device& device", "on another device; x itself if it is there: x.to(\"cuda\")"},
    {"shape", "Tensor", "cat", "const std::vector<Tensor>& tensors, int64_t dim = 0", "joined along an axis: cat({a, b}, 1)", As::function},
    {"shape", "Tensor", "stack", "const std::vector<Tensor>& tensors, int64_t dim = 0", "joined along a new axis: stack({a, b})", As::function},
    {"shape", "Tensor", "roll", "const Tensor& x, const Axes& shifts, const Axes& dims = {}", "elements shifted around an axis: roll(x, 1, 0)"},
    {"shape", "Tensor", "tile", "const Tensor& x, const Shape& dims", "the whole repeated: tile(x, {2, 1})"},
    {"shape", "Tensor", "repeat", "const Tensor& x, const Shape& sizes", "the whole repeated, as tile: repeat(x, {2, 1})"},
    {"shape", "Tensor", "repeat_interleave", "const Tensor& x, int64_t repeats, std::optional<int64_t> dim = {}", "each element repeated: repeat_interleave(x, 2, 0)"},
    {"shape", "Tensor", "repeat_interleave", "const Tensor& x, const Tensor& repeats, std::optional<int64_t> dim = {}", "each element repeated its own number of times: repeat_interleave(x, n, 0)"},
    {"shape", "Tensor", "pad", "const Tensor& x, const std::vector<int64_t>& pad, const PadOptions& options = {}", "pairs (before, after) from the last axis on: pad(x, {1, 1}, {.mode = \"reflect\"})"},
    {"shape", "Tensor", "tril", "const Tensor& x, int64_t diagonal = 0", "the lower triangle, 0 elsewhere: tril(x)"},
    {"shape", "Tensor", "triu", "const Tensor& x, int64_t diagonal = 0", "the upper triangle, 0 elsewhere: triu(x)"},
    {"shape", "Tensor", "diag", "const Tensor& x, int64_t diagonal = 0", "a matrix from its diagonal, or the diagonal of a matrix: diag(v)"},

    {"index", "Tensor", "gather", "const Tensor& x, int64_t dim, const Tensor& index", "values picked along an axis: gather(x, 1, i)"},
    {"index", "Tensor", "scatter", "const Tensor& x, int64_t dim, const Tensor& index, const Operand& src", "values put along an axis, in a copy: scatter(x, 1, i, v)"},
    {"index", "Tensor", "scatter_add", "const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src", "values added along an axis, in a copy: scatter_add(x, 0, i, v)"},
    {"index", "Tensor", "scatter_reduce", "const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src, const std::string& reduce, bool include_self = true", "values combined by sum, prod, mean, amax or amin: scatter_reduce(x, 0, i, v, \"amax\")"},
    {"index", "Tensor", "index_select", "const Tensor& x, int64_t dim, const Tensor& index", "slices in the order of the index: index_select(x, 0, i)"},
    {"index", "Tensor", "index_add", "const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, double alpha = 1", "slices added at the index, in a copy: index_add(x, 0, i, v)"},
    {"index", "Tensor", "take", "const Tensor& x, const Tensor& index", "elements of the flattened tensor: take(x, i)"},
    {"index", "Tensor", "take_along_dim", "const Tensor& x, const Tensor& indices, std::optional<int64_t> dim = {}", "gather with broadcasting: take_along_dim(x, i, 1)"},
    {"index", "Tensor", "masked_fill", "const Tensor& x, const Tensor& mask, const Operand& value", "value where the mask holds: masked_fill(x, m, 0)"},
    {"index", "Tensor", "masked_select", "const Tensor& x, const Tensor& mask", "the elements where the mask holds: masked_select(x, m)"},
    {"index", "Tensor", "nonzero", "const Tensor& x", "indices of the non-zero elements, one row each: nonzero(x)", As::both, Grad::no},
    {"index", "Tensor", "one_hot", "const Tensor& x, int64_t num_classes = -1", "classes as rows of 0 and 1: one_hot(labels, 10)", As::function, Grad::no},
    {"index", "Tensor", "embedding", "const Tensor& weight, const Tensor& indices", "rows of a table: embedding(w, ids)", As::function},
    {"index", "ValuesIndices", "sort", "const Tensor& x, int64_t dim = -1, bool descending = false, bool stable = true", "sorted along an axis, with the order: sort(x)"},
    {"index", "Tensor", "argsort", "const Tensor& x, int64_t dim = -1, bool descending = false", "the order that sorts: argsort(x)", As::both, Grad::no},
    {"index", "ValuesIndices", "topk", "const Tensor& x, int64_t k, int64_t dim = -1, bool largest = true, bool sorted = true", "the k largest or smallest: topk(x, 3)"},
    {"index", "ValuesIndices", "kthvalue", "const Tensor& x, int64_t k, int64_t dim = -1, bool keepdim = false", "the k-th smallest, counted from 1: kthvalue(x, 2)"},
    {"index", "UniqueResult", "unique", "const Tensor& x, const UniqueOptions& options = {}", "the different values, sorted: unique(x).values", As::both, Grad::no},
    {"index", "Tensor", "searchsorted", "const Tensor& sorted, const Operand& values, const SearchOptions& options = {}", "where values would be inserted: searchsorted(edges, x)", As::function, Grad::no},
    {"index", "Tensor", "bucketize", "const Tensor& x, const Tensor& boundaries, const SearchOptions& options = {}", "which bucket each value falls in: bucketize(x, edges)", As::both, Grad::no},
    {"index", "Tensor", "bincount", "const Tensor& x, const Tensor& weights = {}, int64_t minlength = 0", "how often each whole number occurs: bincount(x)", As::both, Grad::no},
    {"index", "HistogramResult", "histogram", "const Tensor& x, int64_t bins = 100, std::optional<std::pair<double, double>> range = {}", "counts in equal bins, and their edges: histogram(x, 10)", As::both, Grad::no},

    {"pointwise", "Tensor", "polygamma", "int64_t n, const Tensor& x", "n-th derivative of digamma: polygamma(2, x)", As::function},
    {"pointwise", "Tensor", "addcmul", "const Tensor& x, const Tensor& a, const Tensor& b, double value = 1", "x + value * a * b: addcmul(x, a, b)"},
    {"pointwise", "Tensor", "addcdiv", "const Tensor& x, const Tensor& a, const Tensor& b, double value = 1", "x + value * a / b: addcdiv(x, a, b)"},
    {"pointwise", "Tensor", "nan_to_num", "const Tensor& x, double nan = 0, std::optional<double> posinf = {}, std::optional<double> neginf = {}", "NaN and infinities replaced: nan_to_num(x)"},
    {"pointwise", "Tensor", "isclose", "const Tensor& x, const Tensor& other, const CloseOptions& options = {}", "true where within rtol and atol: isclose(a, b)", As::both, Grad::no},
    {"pointwise", "bool", "allclose", "const Tensor& x, const Tensor& other, const CloseOptions& options = {}", "whether all elements are close: allclose(a, b, {.rtol = 1e-4})", As::both, Grad::no},
    {"pointwise", "bool", "equal", "const Tensor& x, const Tensor& other", "whether shapes and all elements are equal: equal(a, b)", As::both, Grad::no},
};
// clang-format on

}  // namespace volta
