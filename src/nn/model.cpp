// The functions over any model: each is a visitor of its members.
#include <volta/nn/model.h>

#include <limits>
#include <map>
#include <set>
#include <typeindex>
#include <vector>

#include <volta/autograd.h>
#include <volta/nn/containers.h>
#include <volta/ops.h>

#include "core/check.h"
#include "core/impl.h"
#include "nn/same_values.h"

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

// Parts as users know them: an AnyModule stands for what it holds, and is a part itself only where nothing shows inside.
class PartsVisitor : public nn::Visitor {
 protected:
  ~PartsVisitor() = default;
  virtual void begin(const nn::Module&) {}
  virtual void end(const nn::Module&) {}

 private:
  static bool stands_for_another(const nn::Module& m) { return m.type == typeid(nn::AnyModule); }
  void enter(const nn::Module& m) final {
    empty_ = stands_for_another(m);
    if (!empty_) begin(m);
  }
  void leave(const nn::Module& m) final {
    if (empty_) begin(m);
    if (empty_ || !stands_for_another(m)) end(m);
    empty_ = false;
  }
  bool empty_ = false;  // in an AnyModule, and nothing seen of what it holds
};

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

namespace {
std::string type_of(const ModelView& model) {
  struct First final : nn::Visitor {
    void enter(const nn::Module& m) override {
      if (name.empty()) name = m.type_name;
    }
    std::string name;
  } visitor;
  model.walk(visitor);
  return std::move(visitor.name);
}
}  // namespace

StateDict state_dict(const ModelView& model) {
  StateDict state;
  const auto add = [&](const nn::Path& path, const Tensor& x) {
    const std::string name = path.str();
    if (state.contains(name))
      throw Error(Error::Kind::argument, "state_dict",
                  "the model " + type_of(model) + " has two tensors called '" + name +
                      "': the names in a fields() must differ");
    state.add(name, x.detach());
  };
  each_member(model, add, [&](const nn::Path& path, nn::Buffer& x) {
    if (x.persistent) add(path, x);
  });
  return state;
}

namespace {

// Files of before PyTorch 0.4.1, torchvision's among them, have no counts of batches; nothing but a momentum that is left
// out asks for them.
bool may_be_absent(std::string_view name) {
  return name == "num_batches_tracked" || name.ends_with(".num_batches_tracked");
}

LoadResult compare(const StateDict& model, const StateDict& state) {
  LoadResult result;
  for (const auto& [name, x] : model) {
    if (!state.contains(name)) {
      if (!may_be_absent(name)) result.missing.push_back(name);
    } else if (state.at(name).shape() != x.shape()) {
      result.mismatched.push_back({name, x.shape(), state.at(name).shape()});
    }
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

[[noreturn]] void throw_error(const LoadResult& r) {
  std::vector<std::string> shapes;
  for (const auto& m : r.mismatched)
    shapes.push_back(m.name + " (the model's " + m.model.str() + ", the state's " + m.state.str() + ")");
  throw Error(r.missing.empty() && r.unexpected.empty() ? Error::Kind::shape : Error::Kind::argument, "load_state_dict",
              "the state does not fit the model" + listed("missing", r.missing) + listed("unexpected", r.unexpected) +
                  listed("wrong shape", shapes));
}

}  // namespace

LoadResult load_state_dict(const ModelRef& model, const StateDict& state, const LoadOptions& options) {
  for (const auto& [name, x] : state) x.checked("load_state_dict");
  const StateDict own = state_dict(model);
  const LoadResult result = compare(own, state);
  if (options.strict && !result.complete()) throw_error(result);
  const NoGrad off;
  struct Write {
    std::string name;
    Tensor target, value;
  };
  std::vector<Write> writes;
  std::set<const Storage*> memory;
  std::map<const void*, size_t> tied;
  for (const auto& [name, x] : own) memory.insert(x.impl().storage.get());
  for (const auto& [name, x] : own) {
    if (!state.contains(name) || state.at(name).shape() != x.shape()) continue;
    Tensor value = state.at(name).detach();
    // A state of this very model under other names would change while it is copied.
    if (!same_memory(value, x) && memory.contains(value.impl().storage.get())) value = value.clone();
    const auto [place, first] = tied.try_emplace(address(x), writes.size());
    if (!first && options.strict && x.numel() > 0) {
      const Write& other = writes[place->second];
      require(other.target.shape() != x.shape() || same_values(other.value, value), ErrorKind::argument,
              "load_state_dict", "the model's ", other.name, " and ", name,
              " are one tensor, the state has two different ones");
    }
    writes.push_back({name, x, value});
  }
  for (Write& w : writes) w.target.copy_(w.value);
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

namespace {
// The parts of a model down to some depth, the model itself at 0.
std::vector<std::pair<std::string, nn::Part>> parts(const ModelRef& model, int least, int most) {
  struct Collect final : PartsVisitor {
    void begin(const nn::Module& m) override {
      const bool wanted = depth >= least && depth <= most;
      ++depth;
      if (wanted && seen.emplace(m.object, std::type_index(m.type)).second)
        list.emplace_back(m.path.str(), nn::Part{m.object, &m.type, std::string(m.type_name), m.layer, m.seen});
    }
    void end(const nn::Module&) override { --depth; }
    int depth = 0, least = 0, most = 0;
    std::set<std::pair<const void*, std::type_index>> seen;
    std::vector<std::pair<std::string, nn::Part>> list;
  } visitor;
  visitor.least = least, visitor.most = most;
  model.walk(visitor);
  return std::move(visitor.list);
}
std::vector<nn::Part> without_names(const std::vector<std::pair<std::string, nn::Part>>& named) {
  std::vector<nn::Part> list;
  for (const auto& [name, part] : named) list.push_back(part);
  return list;
}
}  // namespace

std::vector<std::pair<std::string, nn::Part>> named_modules(const ModelRef& model) {
  return parts(model, 0, std::numeric_limits<int>::max());
}
std::vector<std::pair<std::string, nn::Part>> named_children(const ModelRef& model) { return parts(model, 1, 1); }
std::vector<nn::Part> modules(const ModelRef& model) { return without_names(named_modules(model)); }
std::vector<nn::Part> children(const ModelRef& model) { return without_names(named_children(model)); }

namespace nn {

Tensor parameters_to_vector(const std::vector<Tensor>& list) {
  if (list.empty()) throw Error(Error::Kind::argument, "parameters_to_vector", "there are no parameters");
  std::vector<Tensor> flat;
  for (const Tensor& p : list) flat.push_back(p.checked("parameters_to_vector").flatten());
  return cat(flat, 0);
}
void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& list) {
  vector.checked("vector_to_parameters");
  int64_t wanted = 0, at = 0;
  for (const Tensor& p : list) wanted += p.checked("vector_to_parameters").numel();
  require(vector.dim() == 1 && vector.numel() == wanted, ErrorKind::shape, "vector_to_parameters", "parameters of ",
          wanted, " elements from a tensor of shape ", vector);
  const NoGrad off;
  for (const Tensor& p : list) {
    p.detach().copy_(vector.detach().slice(0, at, at + p.numel()).view(p.shape()));
    at += p.numel();
  }
}

Substitute::Substitute(const ModelRef& model, const StateDict& values) {
  std::map<const TensorImpl*, Tensor> by_own;
  std::set<std::string> known;
  std::vector<Owned*> places;
  const auto look = [&](const Path& path, Owned& x) {
    const std::string name = path.str();
    known.insert(name);
    places.push_back(&x);
    if (!values.contains(name)) return;
    const Tensor& value = values.at(name).checked("functional_call");
    const auto [place, fresh] = by_own.emplace(x.impl_pointer(), value);
    require(fresh || place->second.impl_pointer() == value.impl_pointer(), ErrorKind::argument, "functional_call", name,
            " is tied to another weight that is given another tensor");
  };
  each_member(model, look, look);
  std::string unknown;
  for (const auto& [name, x] : values)
    if (!known.contains(name)) unknown += (unknown.empty() ? "" : ", ") + name;
  if (!unknown.empty())
    throw Error(Error::Kind::argument, "functional_call", "the model has no parameter or buffer " + unknown);
  std::set<Owned*> done;
  own_.reserve(places.size());
  for (Owned* x : places) {
    const auto found = by_own.find(x->impl_pointer());
    if (found == by_own.end() || !done.insert(x).second) continue;
    Tensor& place = *x;
    own_.emplace_back(x, std::exchange(place, found->second));
  }
}
Substitute::~Substitute() {
  for (auto& [x, own] : own_) {
    Tensor& place = *x;
    place = std::move(own);
  }
}

}  // namespace nn

void apply(const ModelRef& model, const std::function<void(const nn::Module&)>& f) {
  require_function(f, "apply");
  struct Ends final : PartsVisitor {
    explicit Ends(const std::function<void(const nn::Module&)>& function) : f(function) {}
    void end(const nn::Module& m) override { f(m); }
    const std::function<void(const nn::Module&)>& f;
  } visitor(f);
  model.walk(visitor);
}

}  // namespace volta
