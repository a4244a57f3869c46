// Containers composed at run time.
#include <volta/nn/containers.h>

#include <volta/ops.h>

namespace volta::nn {

Tensor AnyModule::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) {
    if (!held_) throw Error(Error::Kind::argument, "AnyModule", "it holds nothing");
    return held_->run(in);
  });
}
AnyModule& AnyModule::operator=(AnyModule other) {
  if (!held_ || !other.held_ || held_->type() != other.held_->type() || !held_->assign(*other.held_))
    held_ = std::move(other.held_);
  Layer::operator=(std::move(other));
  return *this;
}
void AnyModule::fields(Fields& f) {
  if (held_) held_->fields(f);
}
void AnyModule::cannot_copy(std::string_view type) {
  throw Error(Error::Kind::argument, "AnyModule", "a model of type " + std::string(type) + " cannot be copied");
}
void AnyModule::wrong_type(std::string_view wanted) const {
  const std::string held = held_ ? "a " + std::string(held_->type_name()) : "nothing";
  throw Error(Error::Kind::argument, "AnyModule", "it holds " + held + ", not a " + std::string(wanted));
}

void Sequential::add(AnyModule module) { add(std::to_string(size()), std::move(module)); }
void Sequential::add(const std::string& name, AnyModule module) {
  if (name.empty() || name.find('.') != std::string::npos)
    throw Error(Error::Kind::argument, "Sequential", "'" + name + "' is no name: it is empty or has a dot");
  if (modules_.contains(name)) throw Error(Error::Kind::argument, "Sequential", "there are two layers '" + name + "'");
  modules_.add(name, std::move(module));
}
AnyModule& Sequential::operator[](int64_t index) {
  const int64_t n = int64_t(size()), i = index < 0 ? index + n : index;
  if (i < 0 || i >= n)
    throw Error(Error::Kind::index, "Sequential",
                "index " + std::to_string(index) + " of " + std::to_string(n) + " layers");
  return modules_.item(size_t(i));
}
Sequential& Sequential::operator=(Sequential other) {
  if (names() == other.names())
    for (size_t i = 0; i < modules_.size(); ++i) modules_.item(i) = std::move(other.modules_.item(i));
  else modules_ = std::move(other.modules_);
  given_away_ = other.given_away_;
  Layer::operator=(std::move(other));
  return *this;
}
Tensor Sequential::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) {
    if (given_away_ && modules_.empty())
      throw Error(Error::Kind::argument, "Sequential", "it was moved from, or its builder was built before");
    Tensor y = in;
    for (const auto& [name, module] : modules_) y = module(y);
    return y;
  });
}
void Sequential::fields(Fields& f) {
  for (size_t i = 0; i < modules_.size(); ++i) f(modules_.name(i), modules_.item(i));
}

Sequential::Builder& Sequential::Builder::add(AnyModule module) {
  made_.add(std::move(module));
  return *this;
}
Sequential::Builder& Sequential::Builder::add(const std::string& name, AnyModule module) {
  made_.add(name, std::move(module));
  return *this;
}

}  // namespace volta::nn
