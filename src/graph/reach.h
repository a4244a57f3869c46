// Reach: what a checkpointed function uses from outside of it, found while it runs.
#pragma once
#include <map>
#include <unordered_set>

#include "core/watch.h"
#include "graph/record.h"

namespace volta {

// While it lives, calls recorded by this thread are its inside.
//   forward: their nodes are dropped at once, with all they saved; a mark takes their place.
//   replay:  their nodes stay.
// Tensors that require grad and were not made inside are collected, and so is all memory that is read and was not made
// inside.
class Reach final : public MemoryWatch {
 public:
  enum class Pass { forward, replay };
  explicit Reach(Pass pass);
  ~Reach();
  Reach(const Reach&) = delete;
  Reach& operator=(const Reach&) = delete;

  Tensor marked(const Tensor& x) const;                    // x as an input of the function, its graph cut off
  void own(const Tensor& x) { made_.insert(node_of(x)); }  // x is inside

  void meet(const Tensor& x);                                            // x is an input of a recorded call
  void made(const IntrusivePtr<Node>& node, std::span<Tensor> outputs);  // outputs have this node
  IntrusivePtr<Node> made(IntrusivePtr<Node> node);  // the same for one output, before it is attached
  void read(const Tensor& x) override;               // its memory
  void made(const Storage& memory) override;

  bool is_inside(const Tensor& x) const;
  const std::vector<Saved>& outside() const { return outside_; }
  bool met_only(std::span<const Tensor> known) const;
  std::vector<Saved> constants() const;  // what was read, and not changed afterwards

 private:
  using Place = std::pair<Node*, uint32_t>;
  static Node* node_of(const Tensor& x) { return x.impl().node.get(); }

  Pass pass_;
  uint64_t region_;
  Reach* outer_;
  MemoryWatch* outer_watch_;
  std::map<Place, size_t> places_;  // in outside_
  std::vector<Saved> outside_;
  std::unordered_set<Node*> made_;
  std::unordered_set<const Storage*> memory_;  // made inside
  std::map<const Storage*, Saved> constants_;
};

}  // namespace volta
