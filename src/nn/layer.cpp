// Parameters, buffers, and what surrounds the call of a layer.
#include <volta/nn/layer.h>

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include <volta/autograd.h>
#include <volta/nn/dict.h>
#include <volta/nn/reflect.h>
#include <volta/ops.h>

#include "core/check.h"
#include "core/fork.h"
#include "core/impl.h"
#include "graph/record.h"
#include "nn/same_values.h"

namespace volta {

void detail::no_such_position(size_t index, size_t size) {
  throw_error(ErrorKind::index, "Dict", "there is no entry ", index, ": there are ", size);
}

void detail::no_such_entry(std::string_view name, const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& n : names) list += (list.empty() ? "" : ", ") + n;
  throw Error(Error::Kind::index, "at", "no entry '" + std::string(name) + "'; there are: " + list);
}

namespace nn {

// The copy requires grad as the original does.
Tensor Owned::copy() const {
  if (!defined() || detail::Sharing::on()) return *this;
  const NoGrad off;
  Tensor twin = clone();
  return twin.requires_grad_(requires_grad());
}

// What parameters that are one share. Copying a struct copies its members one after another, each by the same distance:
// that is how the copies of tied members find each other, and others do not.
struct Owned::Tie {
  struct Copying {
    const Owned* first = nullptr;  // the member copied first
    std::ptrdiff_t distance = 0;
    size_t left = 0;          // members whose copies may still join
    uint32_t version = 0;     // of what was copied
    std::weak_ptr<Tie> made;  // the tie of the copies; gone with them
  };
  // The tensor that its members are, if there still is one.
  Tensor one() {
    const std::lock_guard lock(mutex);
    return members.empty() ? Tensor() : Tensor(*members.front());
  }
  // The member assigned last, by how far from what it was assigned, and the version it then had.
  struct Assigned {
    const Owned* member = nullptr;
    std::ptrdiff_t distance = 0;
    uint32_t version = 0;
  };
  std::mutex mutex;
  std::vector<const Owned*> members;
  std::map<std::thread::id, Copying> copying;
  Assigned assigned;
};

void Owned::join(std::shared_ptr<Tie> tie) {
  if (tie_) untie();
  const std::lock_guard lock(tie->mutex);
  tie->members.push_back(this);
  tie_ = std::move(tie);
}

void Owned::take_place_of(Owned& other) noexcept {
  tie_ = std::move(other.tie_);
  const std::lock_guard lock(tie_->mutex);
  std::replace(tie_->members.begin(), tie_->members.end(), static_cast<const Owned*>(&other),
               static_cast<const Owned*>(this));
}

void Owned::untie() noexcept {
  {
    const std::lock_guard lock(tie_->mutex);
    std::erase(tie_->members, this);
  }
  tie_.reset();
}

namespace {
thread_local constinit uint64_t copies_made = 0;
thread_local constinit bool copies_share = false;
}  // namespace

uint64_t Owned::copies() noexcept { return copies_made; }
SharedCopies::SharedCopies() noexcept : before_(std::exchange(copies_share, true)) {}
SharedCopies::~SharedCopies() { copies_share = before_; }

Owned::Owned(const Owned& other) : Tensor(other) {
  ++copies_made;
  Tensor& self = *this;
  if (copies_share) {
    if (other.tie_) join(other.tie_);
    return;
  }
  if (!other.tie_ || !other.defined()) {
    self = other.copy();
    return;
  }
  Tie& tie = *other.tie_;
  const std::lock_guard lock(tie.mutex);
  Tie::Copying& copying = tie.copying[std::this_thread::get_id()];
  const std::ptrdiff_t distance = reinterpret_cast<const char*>(this) - reinterpret_cast<const char*>(&other);
  const std::shared_ptr<Tie> made = copying.made.lock();
  const bool joins = made && copying.left > 0 && copying.first != &other && copying.distance == distance &&
                     copying.version == other.version();
  const Tensor twin = joins ? made->one() : Tensor();
  if (twin.defined()) {
    self = twin;
    join(made);
    --copying.left;
  } else {
    self = other.copy();
    join(std::make_shared<Tie>());
    copying = {&other, distance, tie.members.size() - 1, other.version(), tie_};
  }
  if (copying.left == 0) tie.copying.erase(std::this_thread::get_id());
}

void Parameter::tie_to(Parameter& source) {
  checked("tie"), source.checked("tie");
  if (impl_pointer() == source.impl_pointer()) return;
  require(shape() == source.shape(), ErrorKind::shape, "tie", "a weight of shape ", shape(), " cannot be one of shape ",
          source.shape());
  if (!source.tie_) source.join(std::make_shared<Tie>());
  join(source.tie_);
  Tensor& self = *this;
  self = source;
}

// Assigning a struct assigns its members one after another, each from the same distance: tied ones must be given the same
// values, or the last would silently take the place of the others.
void Owned::check_tied(const Owned& other, const Tensor& value) const {
  if (!tie_) return;
  const std::lock_guard lock(tie_->mutex);
  const Tie::Assigned& last = tie_->assigned;
  const std::ptrdiff_t distance = reinterpret_cast<const char*>(this) - reinterpret_cast<const char*>(&other);
  const bool further = last.member && last.member != this && last.distance == distance && last.version == version();
  require(!further || same_values(*this, value), ErrorKind::argument, "assign", "tied weights of shape ", shape(),
          " are given two different values by one assignment; load a state dict, or tie them again afterwards");
}
void Owned::note_tied(const Owned& other) const {
  if (!tie_) return;
  const std::lock_guard lock(tie_->mutex);
  tie_->assigned = {this, reinterpret_cast<const char*>(this) - reinterpret_cast<const char*>(&other), version()};
}

Owned& Owned::operator=(const Owned& other) {
  if (this == &other) return *this;
  Tensor& self = *this;
  if (!defined() || !other.defined()) {
    self = other.copy();
    return *this;
  }
  if (impl_pointer() == other.impl_pointer()) return *this;
  check_tied(other, other);
  const bool wants = other.requires_grad();
  set_data(other.copy());
  requires_grad_(wants);
  note_tied(other);
  return *this;
}
Owned& Owned::operator=(Owned&& other) {
  if (this == &other) return *this;
  Tensor& self = *this;
  if (!defined() || !other.defined()) {
    if (tie_) untie();
    if (other.tie_) take_place_of(other);
    self = std::move(other);
    return *this;
  }
  const Owned* const source = &other;
  Tensor value = std::move(other);
  if (impl_pointer() == value.impl_pointer()) return *this;
  check_tied(*source, value);
  const bool wants = value.requires_grad();
  assign(std::move(value));
  requires_grad_(wants);
  note_tied(*source);
  return *this;
}

// Values that nobody else holds are taken over, others copied.
void Owned::assign(Tensor value) {
  if (!value.defined()) {
    Tensor& self = *this;
    self = Tensor();
    return;
  }
  if (value.impl_pointer() == impl_pointer()) return;
  const NoGrad off;
  const bool alone = value.impl().refs.load(std::memory_order_acquire) == 1;
  value = value.detach();
  set_data(alone && value.impl().storage->exclusive() && value.is_contiguous() ? value : value.clone());
}

void Owned::set_data(const Tensor& value) {
  TensorImpl& t = checked("set_data").impl();
  const TensorImpl& v = value.checked("set_data").impl();
  if (!is_leaf())
    throw Error(Error::Kind::autograd, "set_data", "only a leaf's values can be replaced, not those of a result");
  if (requires_grad() && !is_floating(v.dtype))
    throw Error(Error::Kind::dtype, "set_data", "a tensor that requires grad stays floating");
  const std::optional<Tensor> gradient = grad();
  const bool fits = value.shape() == shape();
  const uint32_t version = t.storage->version.load();
  if (t.storage != v.storage) v.storage->version = std::max(version + 1, v.storage->version.load());
  t.storage = v.storage;
  t.layout = v.layout;
  t.dtype = v.dtype;
  t.view.reset();
  if (!t.node) return;
  t.node->first = {t.layout.shape, t.dtype, t.storage->device};
  if (t.node->off) return zero_grad();
  const NoGrad off;
  if (gradient) set_grad(fits ? gradient->to(t.dtype).to(t.storage->device) : Tensor());
}

Parameter::Parameter(Tensor value, bool requires_grad)
    : Owned(!value.defined() || value.is_leaf() ? std::move(value) : value.detach()) {
  if (defined()) requires_grad_(requires_grad);
}
Buffer::Buffer(Tensor value, bool is_persistent)
    : Owned(!value.defined() || !value.requires_grad() ? std::move(value) : value.detach()),
      persistent(is_persistent) {}

std::string Path::str() const {
  std::string text = parent ? parent->str() : "";
  if (!name.empty()) text += (text.empty() ? "" : ".") + std::string(name);
  return text;
}
int Path::depth() const { return (parent ? parent->depth() : 0) + !name.empty(); }

struct Layer::Place {
  std::string path;
  int depth;
};

namespace {
std::mutex places_mutex;
[[maybe_unused]] const bool fork_watched = fork_waits_for(places_mutex);
}  // namespace

// Paths live for ever: there are as many as the models' structures have places.
void Layer::set_path(const Path& path) const {
  const Place* known = place_.place.load(std::memory_order_acquire);
  const int depth = path.depth();
  if (depth == 0 || (known && known->depth >= depth)) return;
  static auto& places = *new std::map<std::string, Place>;
  const std::lock_guard lock(places_mutex);
  std::string text = path.str();
  place_.place.store(&places.try_emplace(text, Place{text, depth}).first->second, std::memory_order_release);
}
std::string Layer::path() const {
  const Place* place = place_.place.load(std::memory_order_acquire);
  return place ? place->path : "";
}

double Layer::flops(const Tensor&, const Tensor& output) const { return double(output.numel()); }

namespace {
thread_local constinit Watch* watcher = nullptr;

// Marks an Error that already names the innermost layer.
struct LayerError : Error {
  using Error::Error;
};
}  // namespace

Watch::Watch(See see) : see_(std::move(see)), before_(watcher) {
  require_function(see_, "Watch");
  watcher = this;
}
Watch::~Watch() { watcher = before_; }

struct Layer::Hooks {
  std::vector<std::pair<int, ForwardPreHook>> before;
  std::vector<std::pair<int, ForwardHook>> after;
  int next = 0;
};

bool Layer::watched() const noexcept { return hooks_ || watcher; }

Layer::Hooks& Layer::own_hooks() {
  hooks_ = hooks_ ? std::make_shared<Hooks>(*hooks_) : std::make_shared<Hooks>();
  return *hooks_;
}
int Layer::register_forward_hook(ForwardHook hook) {
  require_function(hook, "register_forward_hook");
  Hooks& h = own_hooks();
  h.after.emplace_back(h.next, std::move(hook));
  return h.next++;
}
int Layer::register_forward_pre_hook(ForwardPreHook hook) {
  require_function(hook, "register_forward_pre_hook");
  Hooks& h = own_hooks();
  h.before.emplace_back(h.next, std::move(hook));
  return h.next++;
}
void Layer::remove_hook(int hook) {
  if (!hooks_) return;
  Hooks& h = own_hooks();
  std::erase_if(h.before, [&](const auto& e) { return e.first == hook; });
  std::erase_if(h.after, [&](const auto& e) { return e.first == hook; });
  if (h.before.empty() && h.after.empty()) hooks_ = nullptr;
}

Tensor Layer::before(const Tensor& x) const {
  Tensor input = x;
  const auto hooks = hooks_;
  if (hooks)
    for (const auto& [id, hook] : hooks->before)
      if (auto changed = hook(*this, input)) input = *changed;
  return input;
}
Tensor Layer::after(const Tensor& x, Tensor y) const {
  const auto hooks = hooks_;
  if (hooks)
    for (const auto& [id, hook] : hooks->after)
      if (auto changed = hook(*this, x, y)) y = *changed;
  for (Watch* w = watcher; w; w = w->before_) w->see_(*this, x, y);
  return y;
}

void refuse_captures(const char* who) {
  throw Error(
      Error::Kind::argument, who,
      "the function captures a layer or Parameter by value, where nobody can see it: write a struct with a call "
      "operator, or capture by reference what another part of the model holds");
}

void reflect::refuse_base(const Path& path, const std::type_info& whole, std::string_view base) {
  char* const readable = abi::__cxa_demangle(whole.name(), nullptr, nullptr, nullptr);
  const std::string derived = readable ? readable : whole.name(), where = path.str();
  std::free(readable);
  throw_error(ErrorKind::argument, "fields", where.empty() ? "the model" : where, " is a ", derived, " held as a ",
              base, ", whose fields() would leave out what ", derived, " adds: make it virtual there, `virtual void ",
              "fields(nn::Fields& f)`");
}

void Layer::fail(const Error& e) const {
  if (dynamic_cast<const LayerError*>(&e)) throw;
  const std::string where = path(), text = e.what();
  const std::string message = text.starts_with(e.op() + ": ") ? text.substr(e.op().size() + 2) : text;
  throw LayerError(e.kind(), e.op(), message + " (in " + (where.empty() ? "" : where + ", ") + type_ + ")");
}

}  // namespace nn
}  // namespace volta
