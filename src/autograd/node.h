// Node: one recorded call, its edges to the inputs' nodes, and its backward rule.
#pragma once
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <volta/tensor.h>

#include "core/memory.h"

namespace volta {

struct Node;
void retain(Node*) noexcept;
void release(Node*) noexcept;  // iterative: a chain of millions of nodes is freed without recursion

struct Edge {
  Ptr<Node> node;  // null: this input needs no gradient
  uint32_t output = 0;
};

struct OutputMeta {
  Shape shape;
  DType dtype = f32;
  Device device;
};

using TensorHook = std::function<std::optional<Tensor>(const Tensor&)>;

struct Hooks {
  struct Entry {
    int id;
    uint32_t output;
    TensorHook hook;
  };
  std::mutex mutex;
  int next = 0;
  std::vector<Entry> entries;
};

// A few edges inline: most ops have one or two inputs.
class Edges {
 public:
  explicit Edges(size_t n) : size_(n) {
    if (n > inline_.size()) more_.resize(n);
  }
  Edge* begin() { return size_ > inline_.size() ? more_.data() : inline_.data(); }
  Edge* end() { return begin() + size_; }
  Edge& operator[](size_t i) { return begin()[i]; }
  size_t size() const { return size_; }

 private:
  size_t size_;
  std::array<Edge, 3> inline_;
  std::vector<Edge> more_;
};

struct Node : Pooled {
  Node(const char* op, size_t inputs) : name(op), edges(inputs) {}
  virtual ~Node() = default;

  // Gradients of the outputs (undefined where none arrived) to gradients of the inputs (only those edges that exist).
  virtual void backward(std::span<const Tensor> outputs, std::span<Tensor> inputs) = 0;
  virtual void release_saved() {}
  virtual bool is_leaf() const { return false; }

  const OutputMeta& meta(uint32_t output) const { return output == 0 ? first : more_outputs[output - 1]; }
  uint32_t output_count() const { return 1 + uint32_t(more_outputs.size()); }
  bool needs(size_t input) { return bool(edges[input].node); }

  std::atomic<uint32_t> refs{1};
  const char* name;
  bool released = false;  // the graph was consumed by a backward pass
  Edges edges;
  OutputMeta first;
  std::vector<OutputMeta> more_outputs;
  std::unique_ptr<Hooks> hooks;
  Node* next_dead = nullptr;
};

// The end of the graph: holds the gradient of a leaf.
struct LeafNode final : Node {
  LeafNode() : Node("leaf", 0) {}
  void backward(std::span<const Tensor>, std::span<Tensor>) override {}
  bool is_leaf() const override { return true; }
  void accumulate(Tensor gradient, bool keep_graph);

  std::mutex mutex;
  Tensor grad;
};

}  // namespace volta
