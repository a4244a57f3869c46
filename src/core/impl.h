// TensorImpl: what a Tensor handle points to.
#pragma once
#include <atomic>
#include <memory>

#include <volta/tensor.h>

#include "core/layout.h"
#include "core/storage.h"

namespace volta {

struct Node;
void retain(Node*) noexcept;
void release(Node*) noexcept;  // iterative: a chain of millions of nodes is freed without recursion

struct ViewRules;  // graph/record.h

// A view made while gradients are recorded remembers what it views: writing through it reaches the base's graph.
struct ViewOf {
  Tensor base;
  const ViewRules* rules;
  std::optional<Layout> relative;  // where it stands (ViewRules); nothing when that cannot be said
  uint32_t version;                // of the storage when the view's node was made
};

struct TensorImpl : Pooled {
  TensorImpl(IntrusivePtr<Storage> memory, const Layout& place, DType type)
      : dtype(type), storage(std::move(memory)), layout(place) {}
  TensorImpl(IntrusivePtr<Storage> memory, const Shape& shape, DType type)
      : dtype(type), storage(std::move(memory)), layout(Layout::contiguous(shape)) {}

  std::atomic<uint32_t> refs{1};
  DType dtype;
  // A view made while nothing was recorded: its base would not see a change in place.
  enum class Unrecorded : uint8_t { no, view, view_of_graph } unrecorded = Unrecorded::no;
  uint32_t output = 0;         // which output of `node` this is
  uint32_t rewrites_seen = 0;  // of the storage, when an unrecorded view was made
  IntrusivePtr<Storage> storage;
  Layout layout;
  IntrusivePtr<Node> node;  // a leaf that requires grad has a LeafNode, a result the node of its op
  std::unique_ptr<ViewOf> view;
};

inline void* address(const Tensor& x) {
  const TensorImpl& t = x.impl();
  return static_cast<char*>(t.storage->data) + t.layout.offset * size_of(t.dtype);
}
inline const Layout& layout(const Tensor& x) { return x.impl().layout; }
inline void bump_version(const Tensor& x) { x.impl().storage->version.fetch_add(1, std::memory_order_relaxed); }
inline bool same_memory(const Tensor& a, const Tensor& b) { return a.impl().storage == b.impl().storage; }

// The same storage seen through another layout; no graph.
Tensor alias(const Tensor& x, const Layout& layout);

Tensor from_storage(IntrusivePtr<Storage> storage, const Layout& layout, DType dtype);

Device common_device(const Tensor& a, const Tensor& b, const char* op);  // throws when they differ

}  // namespace volta
