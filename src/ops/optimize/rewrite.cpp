// Fewer calls for the same results: batch norm becomes part of the weights before it, and what follows a product is done while
// its results are in the caches.
#include <algorithm>

#include <volta/ops.h>

#include "backend/fused_ops.h"
#include "ops/optimize/program.h"

namespace volta::program {
namespace {

std::optional<Fused> fused(const ElementwiseCall& call) {
  for (const auto& [activation, op] : fused_ops)
    if (call.op->index == op) return activation;
  return {};
}

bool whole(const Arg& a, const Arg& like) {
  return a.layout && a.layout->is_contiguous() && a.layout->numel() == like.layout->numel() && a.dtype == like.dtype;
}

class Rewriter {
 public:
  explicit Rewriter(Trace& trace) : t_(trace), gone_(trace.calls.size()) { look(); }

  void run() {
    for (size_t i = 0; i < t_.calls.size(); ++i) {
      if (auto* conv = std::get_if<ConvCall>(&t_.calls[i])) {
        const bool plain =
            conv->piece == ConvPiece::forward && !conv->channels_last && (conv->y.dtype == f32 || conv->y.dtype == f64);
        while (plain && follows(i, conv->y, [&](size_t j) { return joins(*conv, i, j); })) look();
      } else if (auto* product = std::get_if<MatmulCall>(&t_.calls[i])) {
        const bool plain = !product->accumulate && is_floating(product->out.dtype);
        while (plain && follows(i, product->out, [&](size_t j) { return joins(*product, j); })) look();
      }
    }
    for (size_t i = 0; i < t_.calls.size(); ++i)
      if (auto* conv = std::get_if<ConvCall>(&t_.calls[i]); conv && !gone_[i] && conv->piece == ConvPiece::forward)
        keep(*conv);
    std::vector<Call> left;
    for (size_t i = 0; i < t_.calls.size(); ++i)
      if (!gone_[i]) left.push_back(t_.calls[i]);
    t_.calls = std::move(left);
  }

 private:
  struct Touch {
    size_t call;
    bool writes;
  };
  // Which calls touch each memory, in their order.
  void look() {
    touches_.clear();
    for (size_t i = 0; i < t_.calls.size(); ++i)
      if (!gone_[i])
        each_operand(t_.calls[i], [&](Arg& a, bool, bool writes) { touches_[&t_.at(a)].push_back({i, writes}); });
  }
  bool constant(const Arg& a) { return !a.data || t_.at(a).known; }
  bool is_output(const Trace::Memory& memory) const {
    return std::any_of(t_.outputs.begin(), t_.outputs.end(),
                       [&](const Tensor& y) { return y.defined() && y.impl().storage == memory.storage; });
  }

  // Whether the next call that touches what call i writes, all of its memory, can be done by call i: then it is, and its result
  // is what call i writes.
  template <class F> bool follows(size_t i, Arg& y, const F& joins) {
    if (!y.data || y.layout->numel() == 0) return false;
    const Trace::Memory& memory = t_.at(y);
    if (!y.layout->is_contiguous() || memory.storage->data != y.data) return false;
    const std::vector<Touch>& touches = touches_[&memory];
    const auto next = std::find_if(touches.begin(), touches.end(), [&](const Touch& t) { return t.call > i; });
    if (next == touches.end() || touches.front().call != i) return false;
    Arg* const result = written(t_.calls[next->call]);
    if (!result || !whole(*result, y)) return false;
    if (result->data != y.data) {
      // Nobody else may want y, nor the result's memory before this.
      const Trace::Memory& other = t_.at(*result);
      if (is_output(memory) || touches.back().call != next->call || touches_[&other].front().call != next->call)
        return false;
    }
    if (!joins(next->call)) return false;
    y.data = result->data;
    gone_[next->call] = true;
    return true;
  }
  static Arg* written(Call& call) {
    if (auto* c = std::get_if<ElementwiseCall>(&call)) return c->kernel == 0 ? &c->out : nullptr;
    if (auto* c = std::get_if<NormCall>(&call)) return &c->y;
    return nullptr;
  }

  bool joins(ConvCall& conv, size_t i, size_t j) {
    if (const auto* norm = std::get_if<NormCall>(&t_.calls[j])) return folds(conv, *norm);
    const auto& call = std::get<ElementwiseCall>(t_.calls[j]);
    if (call.compute != conv.y.dtype || conv.activation != Fused::none) return false;
    if (const auto activation = activates(call, conv.y)) {
      conv.activation = *activation;
      return true;
    }
    const Arg* other = added_to(call, conv.y);
    if (!other || conv.added.data || !whole(*other, conv.y) || other->layout->shape != conv.y.layout->shape)
      return false;
    // It must be there when the convolution is computed.
    for (const Touch& t : touches_[&t_.at(*other)])
      if (t.writes && t.call >= i) return false;
    conv.added = *other;
    return true;
  }
  bool joins(MatmulCall& product, size_t j) {
    const auto* call = std::get_if<ElementwiseCall>(&t_.calls[j]);
    if (!call || product.activation != Fused::none) return false;
    if (const auto activation = activates(*call, product.out)) {
      product.activation = *activation;
      return true;
    }
    const Arg* other = added_to(*call, product.out);
    const int64_t columns = product.out.layout->shape.back();
    if (!other || product.bias.data || other->dtype != product.out.dtype || !constant(*other)) return false;
    const Layout& l = *other->layout;
    if (l.numel() != columns || l.rank() == 0 || l.shape.back() != columns) return false;
    product.bias = *other;
    product.bias.layout = t_.keep(Layout{{columns}, {l.strides.back()}, 0});
    return true;
  }

  static std::optional<Fused> activates(const ElementwiseCall& call, const Arg& y) {
    if (call.inputs != 1 || call.in[0].data != y.data || !whole(call.in[0], y)) return {};
    return fused(call);
  }
  // What is added to y, the whole of it.
  static const Arg* added_to(const ElementwiseCall& call, const Arg& y) {
    if (call.op->index != index_of<point::Add>(ElementwiseOps{}) || call.inputs != 2) return nullptr;
    const bool first = call.in[0].data == y.data;
    const Arg &same = call.in[first ? 0 : 1], &other = call.in[first ? 1 : 0];
    if (same.data != y.data || !whole(same, y) || other.data == y.data || !other.data || !other.layout) return nullptr;
    return &other;
  }

  // Constant weights of a convolution, in the form that the device likes best.
  void keep(ConvCall& conv) {
    if (!constant(conv.w) || conv.w.layout->numel() == 0 || conv.y.layout->numel() == 0) return;
    if (const IntrusivePtr<Storage> weights = backend(Device()).keep(conv)) {
      const int64_t values = weights->bytes / size_of(conv.w.dtype);
      conv.kept = t_.keep(from_storage(weights, Layout::contiguous({values}), conv.w.dtype));
      conv.w.data = nullptr;
    }
  }

  Tensor tensor(const Arg& a) {
    const Trace::Memory& memory = t_.at(a);
    Layout place = *a.layout;
    place.offset = (static_cast<char*>(a.data) - static_cast<char*>(memory.storage->data)) / size_of(a.dtype);
    return from_storage(memory.storage, place, a.dtype);
  }

  // y = (x * w + b - mean) / sqrt(var + eps) * weight + bias, by other w and b; in f64, and rounded once.
  bool folds(ConvCall& conv, const NormCall& norm) {
    const ConvGeometry& g = conv.geometry;
    if (!norm.given || !norm.over_outer || norm.channels != 1 || norm.groups != g.out_channels ||
        norm.outer != g.batch || norm.inner != g.outputs() || norm.x.data != conv.y.data ||
        conv.activation != Fused::none || conv.added.data)
      return false;
    for (const Arg& a : {conv.w, conv.bias, norm.mean, norm.var, norm.weight, norm.bias})
      if (!constant(a)) return false;
    const auto wide = [&](const Arg& a) { return tensor(a).to(f64).reshape({-1}); };
    Tensor scale = rsqrt(wide(norm.var) + norm.eps);
    if (norm.weight.data) scale = scale * wide(norm.weight);
    Tensor shift = (conv.bias.data ? wide(conv.bias) - wide(norm.mean) : -wide(norm.mean)) * scale;
    if (norm.bias.data) shift = shift + wide(norm.bias);
    const Tensor w = tensor(conv.w).to(f64);
    Shape rows = Shape::filled(int(w.dim()), 1);
    rows[0] = g.out_channels;
    conv.w = t_.keep((w * scale.reshape(rows)).to(conv.w.dtype).contiguous());
    conv.bias = t_.keep(shift.to(conv.w.dtype));
    return true;
  }

  Trace& t_;
  std::vector<bool> gone_;
  std::map<const Trace::Memory*, std::vector<Touch>> touches_;
};

}  // namespace

void rewrite(Trace& trace) { Rewriter(trace).run(); }

}  // namespace volta::program
