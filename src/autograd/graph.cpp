// The recorded graph as text and as DOT.
#include <map>

#include <volta/autograd.h>

#include "autograd/record.h"

namespace volta {
namespace {

struct Listed {
  std::vector<Node*> nodes;
  std::map<Node*, size_t> number;
};

Listed list_graph(const Tensor& y, const char* op) {
  if (!needs_grad(y.checked(op)))
    throw Error(Error::Kind::autograd, op, "the tensor has no graph: it does not have requires_grad");
  Listed l;
  std::vector<Node*> pending{y.impl().node.get()};
  while (!pending.empty()) {
    Node* n = pending.back();
    pending.pop_back();
    if (!l.number.emplace(n, l.nodes.size()).second) continue;
    l.nodes.push_back(n);
    for (const Edge& e : n->edges)
      if (e.node) pending.push_back(e.node.get());
  }
  return l;
}

std::string label(const Node& n) {
  return std::string(n.name) + " " + n.first.shape.str() + " " + std::string(name(n.first.dtype));
}

}  // namespace

std::string graph_text(const Tensor& y) {
  const Listed l = list_graph(y, "graph_text");
  std::string text;
  for (Node* n : l.nodes) {
    text += std::to_string(l.number.at(n)) + ": " + label(*n);
    const char* between = " <- ";
    for (const Edge& e : n->edges) {
      if (!e.node) continue;
      text += between + std::to_string(l.number.at(e.node.get()));
      between = ", ";
    }
    text += "\n";
  }
  return text;
}

std::string graph_dot(const Tensor& y) {
  const Listed l = list_graph(y, "graph_dot");
  std::string text = "digraph {\n";
  for (Node* n : l.nodes) {
    const std::string id = "n" + std::to_string(l.number.at(n));
    text += "  " + id + " [label=\"" + label(*n) + "\"" + (n->is_leaf() ? ", shape=box" : "") + "];\n";
    for (const Edge& e : n->edges)
      if (e.node) text += "  " + id + " -> n" + std::to_string(l.number.at(e.node.get())) + ";\n";
  }
  return text + "}\n";
}

}  // namespace volta
