// The graph behind a tensor as text.
#include <map>
#include <sstream>

#include <volta/autograd.h>

#include "core/check.h"
#include "graph/record.h"

namespace volta {
namespace {

// Every node below y with the numbers of its inputs, as lines of text or as a graph of the dot language.
std::string graph(const Tensor& y, const char* op, bool dot) {
  require(needs_grad(y.checked(op)), ErrorKind::autograd, op,
          "the tensor has no graph: it does not have requires_grad");
  std::vector<Node*> nodes{y.impl().node.get()};
  std::map<Node*, size_t> number{{nodes[0], 0}};
  std::ostringstream text;
  for (size_t i = 0; i < nodes.size(); ++i) {
    Node& n = *nodes[i];
    text << (dot ? "  n" : "") << i << (dot ? " [label=\"" : ": ") << n.name << ' ' << n.first.shape.str() << ' '
         << text_of(n.first.dtype);
    if (dot) text << (n.is_leaf() ? "\", shape=box];\n" : "\"];\n");
    const char* between = " <- ";
    for (const Edge& e : n.edges) {
      if (!e.node) continue;
      const auto [at, fresh] = number.emplace(e.node.get(), nodes.size());
      if (fresh) nodes.push_back(e.node.get());
      if (dot) text << "  n" << i << " -> n" << at->second << ";\n";
      else text << std::exchange(between, ", ") << at->second;
    }
    if (!dot) text << '\n';
  }
  return text.str();
}

}  // namespace

std::string graph_text(const Tensor& y) { return graph(y, "graph_text", false); }
std::string graph_dot(const Tensor& y) { return "digraph {\n" + graph(y, "graph_dot", true) + "}\n"; }

}  // namespace volta
