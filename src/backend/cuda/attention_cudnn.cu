// The graphs of operations that cuDNN knows as attention: it runs each as one kernel (backward: three) on the tensor cores of
// the GPU at hand. The order in which it adds to the gradient of the queries changes from run to run.
#include "backend/cuda/attention_cudnn.h"

#ifdef VOLTA_HAVE_CUDNN
#include <cmath>
#include <map>

#include "backend/cuda/cudnn.h"

namespace volta::cuda {
namespace {

constexpr const char* op = "attention";
constexpr int64_t least_length = 128;  // of queries and keys: a plan takes time to make, and short ones gain nothing
constexpr int64_t workspace_limit = int64_t(1) << 30;
constexpr size_t most_plans = 1024;

using Sizes = std::vector<int64_t>;
using Node = cudnnBackendDescriptor_t;

// The tensors that a plan is run on.
enum Name : int64_t {
  q,
  k,
  v,
  out,
  logsumexp,
  scale,
  unseen,
  grad_out,
  grad_q,
  grad_k,
  grad_v,
  sum_q,
  row_sums,
  one,
  inner
};

// Makes a graph operation by operation.
class Builder {
 public:
  CudnnGraph graph;

  Node tensor(int64_t name, cudnnDataType_t type, const Sizes& sizes, const Sizes& strides) {
    Descriptor d = cudnn_tensor(name, type, sizes, strides);
    if (name >= inner) d.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true);
    if (name == scale || name == unseen || name == one)  // passed by the host with every run
      d.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, true);
    return finished(std::move(d));
  }
  Node tensor(int64_t name, cudnnDataType_t type, const Sizes& sizes) {
    return tensor(name, type, sizes, packed(sizes));
  }
  // A result that only the operations after it see.
  Node between(cudnnDataType_t type, const Sizes& sizes, const Sizes& strides) {
    return tensor(++last_, type, sizes, strides);
  }
  Node between(cudnnDataType_t type, const Sizes& sizes) { return between(type, sizes, packed(sizes)); }
  Node number(Name name) { return tensor(name, CUDNN_DATA_FLOAT, {1, 1, 1, 1}); }

  void multiply(Node a, Node b, Node result) {
    Descriptor how(CUDNN_BACKEND_MATMUL_DESCRIPTOR), node(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    refer(node, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    refer(node, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    refer(node, CUDNN_ATTR_OPERATION_MATMUL_CDESC, result);
    refer(node, CUDNN_ATTR_OPERATION_MATMUL_DESC, finished(std::move(how)));
    add(std::move(node));
  }

  struct Each {
    cudnnPointwiseMode_t mode;
    Node a, b = nullptr, choice = nullptr;
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    int64_t axis = -1;
  };
  Node each(const Each& e, Node result) {
    Descriptor how(CUDNN_BACKEND_POINTWISE_DESCRIPTOR), node(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, e.mode);
    how.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, e.compute);
    if (e.axis >= 0) how.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, e.axis);
    refer(node, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, finished(std::move(how)));
    refer(node, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, e.a);
    if (e.b) refer(node, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, e.b);
    if (e.choice) refer(node, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, e.choice);
    refer(node, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, result);
    add(std::move(node));
    return result;
  }

  void reduce(cudnnReduceTensorOp_t how, Node x, Node result) {
    Descriptor d(CUDNN_BACKEND_REDUCTION_DESCRIPTOR), node(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    d.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, how);
    d.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    refer(node, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    refer(node, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, result);
    refer(node, CUDNN_ATTR_OPERATION_REDUCTION_DESC, finished(std::move(d)));
    add(std::move(node));
  }

  Node reshape(Node x, Node result) {
    Descriptor node(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    refer(node, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    refer(node, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, result);
    add(std::move(node));
    return result;
  }

  static Sizes packed(const Sizes& sizes) {
    Sizes strides(sizes.size(), 1);
    for (size_t i = sizes.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * sizes[i];
    return strides;
  }

 private:
  Node finished(Descriptor&& d) {
    d.finalize();
    return graph.parts.emplace_back(std::move(d)).handle();
  }
  void add(Descriptor&& node) {
    node.finalize();
    graph.nodes.push_back(std::move(node));
  }
  static void refer(Descriptor& from, cudnnBackendAttributeName_t name, Node to) {
    from.set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, to);
  }

  int64_t last_ = inner;
};

// What a plan depends on. Tensors are [batch, heads, rows, columns].
struct Problem {
  bool backward = false, causal;
  DType dtype;
  int64_t batch = 1, heads = 1, few = 1, queries, keys, width;
  std::array<std::array<int64_t, 4>, 5> strides{};  // of q, k, v, out, grad_out
  bool fits = true;
  auto operator<=>(const Problem&) const = default;

  explicit Problem(const AttentionCall& call) : causal(call.causal), dtype(call.q.dtype) {
    const Shape &of_q = call.q.layout->shape, &of_k = call.k.layout->shape;
    const int rank = of_q.size();
    queries = of_q[rank - 2], width = of_q[rank - 1], keys = of_k[rank - 2];
    if (rank > 2) heads = of_q[rank - 3], few = of_k[rank - 3];
    if (rank > 3) batch = of_q[rank - 4];
    fits = rank <= 4 && !call.mask.data && call.dropout == 0 && queries >= least_length && keys >= least_length;
    operand(0, call.q), operand(1, call.k), operand(2, call.v), operand(3, call.out);
  }
  void operand(size_t i, const Arg& x) {
    const int rank = x.layout->rank();
    fits = fits && reinterpret_cast<uintptr_t>(x.data) % cudnn_alignment == 0 && x.layout->strides[rank - 1] == 1;
    if (!fits) return;
    int64_t dense = 1;
    for (int a = rank - 1; a >= 0; --a) {
      const int64_t size = x.layout->shape[a], stride = size == 1 ? dense : x.layout->strides[a];
      fits = fits && stride > 0 && (a == rank - 1 || stride % 8 == 0);
      strides[i][size_t(a + 4 - rank)] = stride;
      dense = std::max(dense, size * stride);
    }
    for (int a = 3 - rank; a >= 0; --a) strides[i][size_t(a)] = dense;
  }

  Sizes of_queries() const { return {batch, heads, queries, width}; }
  Sizes of_keys() const { return {batch, few, keys, width}; }
  Sizes of_scores() const { return {batch, heads, queries, keys}; }
  Sizes of_rows() const { return {batch, heads, queries, 1}; }
};

class Graph : Builder {
 public:
  explicit Graph(const Problem& problem) : p(problem), half(cudnn_type(problem.dtype)) {}

  CudnnGraph forward() && {
    const Node of_q = input(q, 0, p.of_queries()), of_k = turned(k, 1), of_v = input(v, 2, p.of_keys());
    const Node scores = masked(scaled(of_q, of_k));
    const Node most = row(), total = row();
    reduce(CUDNN_REDUCE_TENSOR_MAX, scores, most);
    const Node less = each({CUDNN_POINTWISE_SUB, scores, most}, score());
    const Node powers = each({CUDNN_POINTWISE_EXP, less}, score());
    reduce(CUDNN_REDUCE_TENSOR_ADD, powers, total);
    const Node log = each({CUDNN_POINTWISE_LOG, total}, row());
    each({CUDNN_POINTWISE_ADD, most, log}, tensor(logsumexp, CUDNN_DATA_FLOAT, p.of_rows()));
    const Node weights = each({CUDNN_POINTWISE_DIV, powers, total}, between(half, p.of_scores()));
    multiply(weights, of_v, input(out, 3, p.of_queries()));
    return std::move(graph);
  }

  CudnnGraph backward() && {
    const Node of_q = input(q, 0, p.of_queries()), of_k = turned(k, 1), of_v = turned(v, 2);
    const Node of_out = input(out, 3, p.of_queries()), g = input(grad_out, 4, p.of_queries());
    const Node products = each({CUDNN_POINTWISE_MUL, g, of_out}, between(CUDNN_DATA_FLOAT, p.of_queries()));
    const Node sum = row();
    reduce(CUDNN_REDUCE_TENSOR_ADD, products, sum);
    const Node sums = each({CUDNN_POINTWISE_MUL, sum, number(one)}, tensor(row_sums, CUDNN_DATA_FLOAT, p.of_rows()));

    const Node scores = scaled(of_q, of_k);
    const Node level = tensor(logsumexp, CUDNN_DATA_FLOAT, p.of_rows());
    const Node less = masked(each({CUDNN_POINTWISE_SUB, scores, level}, score()));
    const Node weights = each({CUDNN_POINTWISE_EXP, less}, score());
    gradient(grad_v, weights, g);

    const Node through = score();
    multiply(g, of_v, through);
    const Node centred = each({CUDNN_POINTWISE_SUB, through, sums}, score());
    const Node product = each({CUDNN_POINTWISE_MUL, centred, weights}, score());
    const Node d = each({CUDNN_POINTWISE_MUL, product, factor}, score());
    gradient(grad_k, d, of_q);

    const auto& s = p.strides[1];
    const Node keys = reshape(of_k, between(half, p.of_keys(), {s[0], s[1], s[2], s[3]}));
    const Node gathered = tensor(sum_q, CUDNN_DATA_FLOAT, p.of_queries());
    multiply(d, keys, gathered);
    each({CUDNN_POINTWISE_IDENTITY, gathered}, tensor(grad_q, half, p.of_queries()));
    return std::move(graph);
  }

 private:
  const Problem& p;
  cudnnDataType_t half;
  Node factor = nullptr;

  Node score() { return between(CUDNN_DATA_FLOAT, p.of_scores()); }
  Node row() { return between(CUDNN_DATA_FLOAT, p.of_rows()); }
  Node input(Name name, size_t i, const Sizes& sizes) {
    return tensor(name, half, sizes, Sizes(p.strides[i].begin(), p.strides[i].end()));
  }
  Node turned(Name name, size_t i) {
    const auto& s = p.strides[i];
    return tensor(name, half, {p.batch, p.few, p.width, p.keys}, {s[0], s[1], s[3], s[2]});
  }
  // The gradient of keys or values: weights, with keys as rows, times x; heads that share them are summed.
  void gradient(Name name, Node weights, Node x) {
    const int64_t matrix = p.queries * p.keys;
    const Node flipped =
        reshape(weights, between(half, {p.batch, p.heads, p.keys, p.queries}, {p.heads * matrix, matrix, 1, p.keys}));
    const Node target = tensor(name, half, p.of_keys());
    if (p.heads == p.few) return multiply(flipped, x, target);
    const Node of_each = between(half, {p.batch, p.heads, p.keys, p.width});
    multiply(flipped, x, of_each);
    reduce(CUDNN_REDUCE_TENSOR_ADD, of_each, target);
  }
  Node scaled(Node of_q, Node of_k) {
    const Node products = score();
    multiply(of_q, of_k, products);
    factor = number(scale);
    return each({CUDNN_POINTWISE_MUL, products, factor}, score());
  }
  Node masked(Node scores) {
    if (!p.causal) return scores;
    const auto index = [&](int64_t axis) {
      return each({.mode = CUDNN_POINTWISE_GEN_INDEX, .a = scores, .axis = axis},
                  between(CUDNN_DATA_INT32, p.of_scores()));
    };
    const Node query = index(2), key = index(3);
    const Node seen = each({.mode = CUDNN_POINTWISE_CMP_GE, .a = query, .b = key, .compute = CUDNN_DATA_BOOLEAN},
                           between(CUDNN_DATA_BOOLEAN, p.of_scores()));
    return each({CUDNN_POINTWISE_BINARY_SELECT, scores, number(unseen), seen}, score());
  }
};

using Plans = std::map<Problem, std::optional<CudnnPlan>>;  // those made so far, of a device
Plans& plans_on(const Context& c) {
  static Plans* const plans = new Plans[most_devices];
  return plans[c.device];
}

std::optional<CudnnPlan> plan_for(CudnnHandle& h, const Problem& problem) {
  h.make();
  try {
    Graph all(problem);
    CudnnGraph graph = problem.backward ? std::move(all).backward() : std::move(all).forward();
    graph.finalize(h.handle);
    auto plans = plans_of(h.handle, graph, 1, workspace_limit, [](const Descriptor&) { return true; });
    if (!plans.empty()) return std::move(plans[0]);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::device) throw;  // otherwise this version of the library does not know the graph
  }
  return {};
}

bool run(Context& c, const Problem& problem, double factor, Sizes names, std::vector<void*> data) {
  CudnnHandle& h = CudnnHandle::of(c);
  const std::lock_guard lock(h.mutex);
  Plans& plans = plans_on(c);
  auto known = plans.find(problem);
  if (known == plans.end()) {
    if (plans.size() >= most_plans) plans.clear();
    known = plans.try_emplace(problem, plan_for(h, problem)).first;
  }
  if (!known->second) return false;
  float numbers[] = {float(factor), -INFINITY, 1};
  names.push_back(scale), data.push_back(&numbers[0]);
  if (problem.causal) names.push_back(unseen), data.push_back(&numbers[1]);
  if (problem.backward) names.push_back(one), data.push_back(&numbers[2]);
  return execute(c, h, *known->second, names, data, op);
}

}  // namespace

bool attend_by_cudnn(Context& c, const AttentionCall& call) {
  const Problem problem(call);
  if (!problem.fits || !cudnn_library().loaded()) return false;
  return run(c, problem, call.scale, {q, k, v, out, logsumexp},
             {call.q.data, call.k.data, call.v.data, call.out.data, call.logsumexp.data});
}

bool attend_backward_by_cudnn(Context& c, const AttentionBackwardCall& call) {
  Problem problem(call);
  problem.backward = true;
  problem.operand(4, call.grad_out);
  // Versions to 9.15 read beyond the last key where the number of keys is no multiple of a tile.
  if (!problem.fits || !cudnn_library().loaded() || (problem.keys % 128 != 0 && cudnn().version() <= 91500))
    return false;
  const int64_t rows = problem.batch * problem.heads * problem.queries;
  const Room sums = c.memory().take(rows * int64_t(sizeof(float)), op);
  const Room halves = c.memory().take(rows * problem.width * size_of(problem.dtype), op);
  return run(c, problem, call.scale, {q, k, v, out, logsumexp, grad_out, grad_q, grad_k, grad_v, sum_q, row_sums},
             {call.q.data, call.k.data, call.v.data, call.out.data, call.logsumexp.data, call.grad_out.data,
              halves->data, call.grad_k.data, call.grad_v.data, call.grad_q.data, sums->data});
}

}  // namespace volta::cuda

#else

namespace volta::cuda {
bool attend_by_cudnn(Context&, const AttentionCall&) { return false; }
bool attend_backward_by_cudnn(Context&, const AttentionBackwardCall&) { return false; }
}  // namespace volta::cuda

#endif
