// Autocast: the guard, the casts it makes, and those it keeps.
#include "ops/autocast.h"

#include <unordered_map>

#include <volta/autocast.h>
#include <volta/ops.h>
#include <volta/plain.h>

#include "core/check.h"
#include "ops/check.h"

namespace volta {
namespace {

// A cast of a parameter. Several graphs share it, so a backward pass does not consume it; the engine restores the dtype.
struct CastNode final : Node {
  CastNode() : Node("autocast", 1) { lasting = true; }
  void backward(std::span<const Tensor> g, std::span<Tensor> inputs) override { inputs[0] = g[0]; }
};

// A parameter and its cast, with what tells that either has changed since. Other memory comes with another version.
struct Kept {
  Tensor parameter, cast;
  IntrusivePtr<Node> leaf;
  uint32_t parameter_version, cast_version;

  explicit Kept(const Tensor& x, DType dtype) : parameter(x), leaf(x.impl().node), parameter_version(x.version()) {
    // Whether or not calls are recorded now: a cast made under NoGrad must not cut the graph of a later call.
    cast = unrecorded([&] { return x.detach().to(dtype); });
    const auto node = IntrusivePtr<Node>::adopt(new CastNode);
    connect(*node, 0, x);
    attach(node, std::span(&cast, 1));
    cast_version = cast.version();
  }
  bool holds(const Tensor& x, DType dtype) const {
    return cast.dtype() == dtype && leaf == x.impl().node && x.version() == parameter_version &&
           cast.version() == cast_version;
  }
};

// The casts of this thread, until its outermost guard ends.
struct Cache {
  int guards = 0;
  std::unordered_map<const TensorImpl*, Kept> kept;
};
thread_local Cache cache;

const Tensor& kept_cast(const Tensor& x, DType dtype) {
  const auto [found, made] = cache.kept.try_emplace(x.impl_pointer(), x, dtype);
  if (!made && !found->second.holds(x, dtype)) found->second = Kept(x, dtype);
  return found->second.cast;
}

// Parameters alone: what is computed lives no longer than its graph. Not in a checkpoint, which drops the graph of what is
// made in it.
bool is_kept(const Tensor& x, DType dtype) {
  return modes.autocast.cache && is_half(dtype) && x.dtype() == f32 && needs_grad(x) && x.impl().node->is_leaf() &&
         !x.impl().view && !modes.reach;
}

}  // namespace

Autocast::Autocast(DType dtype, const AutocastOptions& options)
    : on_before_(modes.autocast.on), cache_before_(modes.autocast.cache), dtype_before_(modes.autocast.dtype) {
  require_dtype(dtype, "Autocast");
  require(is_half(dtype), ErrorKind::dtype, "Autocast", "needs f16 or bf16, got ", dtype);
  modes.autocast = {options.enabled, options.cache_enabled, dtype};
  ++cache.guards;
}
Autocast::~Autocast() {
  modes.autocast = {on_before_, cache_before_, dtype_before_};
  if (--cache.guards == 0) cache.kept.clear();
}

bool is_autocast_enabled() { return modes.autocast.on; }
DType autocast_dtype() { return modes.autocast.dtype; }

void CastScope::look_at(const Tensor& x) {
  if (!x.defined()) return;
  any_f32_ = any_f32_ || x.dtype() == f32;
  any_f64_ = any_f64_ || x.dtype() == f64;
}

void CastScope::begin(Cast how) {
  casts_ = how != Cast::as_given && !any_f64_ && (how != Cast::widest || any_f32_);
  to_ = how == Cast::low ? modes.autocast.dtype : f32;
  modes.autocast.on = false;
}

Tensor CastScope::operator()(const Tensor& x) const {
  if (!casts_ || !x.defined() || !is_floating(x.dtype()) || x.dtype() == f64 || x.dtype() == to_) return x;
  return is_kept(x, to_) ? kept_cast(x, to_) : x.to(to_);
}

std::vector<Tensor> CastScope::operator()(const std::vector<Tensor>& list) const {
  std::vector<Tensor> cast;
  for (const Tensor& x : list) cast.push_back((*this)(x));
  return cast;
}

#include <volta/cast_bodies.h>  // the generated functions

}  // namespace volta
