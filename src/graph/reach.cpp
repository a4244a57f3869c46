// What a checkpointed function makes, reads and meets.
#include "graph/reach.h"

#include <algorithm>
#include <atomic>

namespace volta {
namespace {

// Stands for the node of a call inside a checkpoint.
struct Mark final : Node {
  explicit Mark(uint64_t r) : Node("checkpoint", 0), region(r) { inside = true; }
  void backward(std::span<const Tensor>, std::span<Tensor>) override {}
  uint64_t region;
};

uint64_t next_region() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

Reach::Reach(Pass pass)
    : pass_(pass),
      region_(next_region()),
      outer_(std::exchange(modes.reach, this)),
      outer_watch_(std::exchange(memory_watch, this)) {}
Reach::~Reach() {
  modes.reach = outer_;
  memory_watch = outer_watch_;
}

Tensor Reach::marked(const Tensor& x) const {
  Tensor y = x.detach();
  y.impl().node = IntrusivePtr<Node>::adopt(new Mark(region_));
  y.impl().node->first = {y.shape(), y.dtype(), y.device()};
  return y;
}

bool Reach::is_inside(const Tensor& x) const {
  const Node* n = node_of(x);
  if (pass_ == Pass::replay) return made_.contains(const_cast<Node*>(n));
  return n->inside && static_cast<const Mark*>(n)->region == region_;
}

void Reach::meet(const Tensor& x) {
  if (is_inside(x)) return;
  if (places_.emplace(Place{node_of(x), x.impl().output}, outside_.size()).second) outside_.emplace_back(x);
}

IntrusivePtr<Node> Reach::made(IntrusivePtr<Node> node) {
  if (pass_ == Pass::replay) {
    made_.insert(node.get());
    return node;
  }
  auto mark = IntrusivePtr<Node>::adopt(new Mark(region_));
  mark->first = node->first;
  mark->more_outputs = node->more_outputs;
  return mark;
}

void Reach::made(const IntrusivePtr<Node>& node, std::span<Tensor> outputs) {
  const IntrusivePtr<Node> kept = made(node);
  for (const Tensor& y : outputs)
    if (y.impl().node == node) y.impl().node = kept;
}

void Reach::made(const Storage& memory) {
  if (outer_) outer_->made(memory);
  memory_.insert(&memory);
}

void Reach::read(const Tensor& x) {
  if (outer_) outer_->read(x);
  const Storage* memory = x.impl().storage.get();
  if (pass_ == Pass::replay || memory_.contains(memory)) return;
  Saved& known = constants_[memory];
  if (!known || !known.unchanged()) known = Saved(x.is_leaf() ? x : x.detach());  // a leaf may get other memory
}

std::vector<Saved> Reach::constants() const {
  std::vector<Saved> all;
  for (const auto& [memory, s] : constants_)
    if (s.unchanged()) all.push_back(s);
  return all;
}

bool Reach::met_only(std::span<const Tensor> known) const {
  return std::all_of(places_.begin(), places_.end(), [&](const auto& met) {
    return std::any_of(known.begin(), known.end(), [&](const Tensor& x) {
      return Place{node_of(x), x.impl().output} == met.first;
    });
  });
}

}  // namespace volta
