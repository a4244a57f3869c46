// The functions over any model: each is a visitor of its members.
#include <volta/nn/model.h>

#include <set>

#include <volta/autograd.h>
#include <volta/ops.h>

#include "core/check.h"

namespace volta {
namespace {

// Calls one function with every parameter and one with every buffer.
template <class P, class B> struct Members final : nn::Visitor {
  Members(P p, B b) : on_parameter(p), on_buffer(b) {}
  void parameter(const nn::Path& path, nn::Parameter& x) override { on_parameter(path, x); }
  void buffer(const nn::Path& path, nn::Buffer& x) override { on_buffer(path, x); }
  P on_parameter;
  B on_buffer;
};
constexpr auto ignore = [](const nn::Path&, Tensor&) {};

template <class P, class B> void each_member(const ModelView& model, P p, B b) {
  Members<P, B> visitor(p, b);
  model.walk(visitor);
}
template <class P> void each_parameter(const ModelView& model, P p) { each_member(model, p, ignore); }

// Adds each tensor once, though two places may share it.
template <class Add> auto once(Add add) {
  return [add, seen = std::set<const TensorImpl*>()](const nn::Path& path, Tensor& x) mutable {
    if (seen.insert(x.impl_pointer()).second) add(path, x);
  };
}

template <class F> void each_module(const ModelView& model, F f) {
  struct Leave final : nn::Visitor {
    explicit Leave(F& function) : f(function) {}
    void leave(const nn::Module& m) override { f(m); }
    F& f;
  } visitor(f);
  model.walk(visitor);
}

}  // namespace

std::vector<Tensor> parameters(const ModelView& model) {
  std::vector<Tensor> list;
  each_parameter(model, once([&](const nn::Path&, Tensor& x) { list.push_back(x); }));
  return list;
}
std::vector<Tensor> buffers(const ModelView& model) {
  std::vector<Tensor> list;
  each_member(model, ignore, once([&](const nn::Path&, Tensor& x) { list.push_back(x); }));
  return list;
}
std::vector<std::pair<std::string, Tensor>> named_parameters(const ModelView& model) {
  std::vector<std::pair<std::string, Tensor>> list;
  each_parameter(model, once([&](const nn::Path& path, Tensor& x) { list.emplace_back(path.str(), x); }));
  return list;
}
std::vector<std::pair<std::string, Tensor>> named_buffers(const ModelView& model) {
  std::vector<std::pair<std::string, Tensor>> list;
  each_member(model, ignore, once([&](const nn::Path& path, Tensor& x) { list.emplace_back(path.str(), x); }));
  return list;
}

int64_t num_parameters(const ModelView& model, bool trainable_only) {
  int64_t n = 0;
  for (const Tensor& x : parameters(model)) n += !trainable_only || x.requires_grad() ? x.numel() : 0;
  return n;
}

StateDict state_dict(const ModelView& model) {
  StateDict state;
  each_member(
      model, [&](const nn::Path& path, nn::Parameter& x) { state.add(path.str(), x.detach()); },
      [&](const nn::Path& path, nn::Buffer& x) {
        if (x.persistent) state.add(path.str(), x.detach());
      });
  return state;
}

namespace {

LoadResult compare(const StateDict& model, const StateDict& state) {
  LoadResult result;
  for (const auto& [name, x] : model) {
    if (!state.contains(name)) result.missing.push_back(name);
    else if (state.at(name).shape() != x.shape())
      result.mismatched.push_back({name, x.shape(), state.at(name).shape()});
  }
  for (const auto& [name, x] : state)
    if (!model.contains(name)) result.unexpected.push_back(name);
  return result;
}

std::string listed(const char* title, const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? std::string("\n  ") + title + ": " : ", ") + name;
  return text;
}

[[noreturn]] void refuse(const LoadResult& r) {
  std::vector<std::string> shapes;
  for (const auto& m : r.mismatched) shapes.push_back(m.name + " " + m.model.str() + ", not " + m.state.str());
  throw Error(r.missing.empty() && r.unexpected.empty() ? Error::Kind::shape : Error::Kind::argument, "load_state_dict",
              "the state does not fit the model" + listed("missing", r.missing) + listed("unexpected", r.unexpected) +
                  listed("wrong shape", shapes));
}

}  // namespace

LoadResult load_state_dict(const ModelRef& model, const StateDict& state, const LoadOptions& options) {
  for (const auto& [name, x] : state) x.checked("load_state_dict");
  const StateDict own = state_dict(model);
  const LoadResult result = compare(own, state);
  if (options.strict && !result.complete()) refuse(result);
  const NoGrad off;
  for (const auto& [name, x] : own) {
    if (!state.contains(name) || state.at(name).shape() != x.shape()) continue;
    Tensor target = x;
    target.copy_(state.at(name).detach());
  }
  return result;
}

void train(const ModelRef& model, bool on) {
  each_module(model, [&](const nn::Module& m) {
    if (m.layer) m.layer->training = on;
  });
}
void eval(const ModelRef& model) { train(model, false); }

void zero_grad(const ModelView& model) {
  each_parameter(model, [](const nn::Path&, Tensor& x) { x.zero_grad(); });
}
void freeze(const ModelRef& model) {
  each_parameter(model, [](const nn::Path&, Tensor& x) { x.requires_grad_(false); });
}
void unfreeze(const ModelRef& model) {
  each_parameter(model, [](const nn::Path&, Tensor& x) { x.requires_grad_(true); });
}

namespace {
// A tensor shared by two places is converted once.
template <class Convert> void convert(const ModelRef& model, Convert converted) {
  const NoGrad off;
  const auto replace = [&](const nn::Path&, nn::Owned& x) {
    const Tensor value = converted(x.detach());
    if (value.dtype() != x.dtype() || value.device() != x.device()) x.set_data(value);
  };
  each_member(model, replace, replace);
}
}  // namespace

void to(const ModelRef& model, DType dtype) {
  if (!is_floating(dtype))
    throw Error(Error::Kind::dtype, "to", "a model takes floating dtypes, not " + std::string(name(dtype)));
  convert(model, [&](const Tensor& x) { return is_floating(x.dtype()) ? x.to(dtype) : x; });
}
void to(const ModelRef& model, const Device& device) {
  convert(model, [&](const Tensor& x) { return x.to(device); });
}

void apply(const ModelRef& model, const std::function<void(const nn::Module&)>& f) {
  require_function(f, "apply");
  each_module(model, f);
}

}  // namespace volta
