// Shows message passing on a graph: who sided with whom in Zachary's karate club, from two known members; run
// `graph_network [--short]`.
#include <volta/volta.h>

#include <cstdio>
#include <string_view>
#include <vector>

using namespace volta;

namespace {

// Zachary 1977: for each of 34 members, the later ones he met outside of the club.
// clang-format off
const std::vector<std::vector<int64_t>> friends = {
    {1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31}, {2, 3, 7, 13, 17, 19, 21, 30},
    {3, 7, 8, 9, 13, 27, 28, 32}, {7, 12, 13}, {6, 10}, {6, 10, 16}, {16}, {}, {30, 32, 33}, {33},
    {}, {}, {}, {33}, {32, 33}, {32, 33}, {}, {}, {32, 33}, {33}, {32, 33}, {}, {32, 33},
    {25, 27, 29, 32, 33}, {25, 27, 31}, {31}, {29, 33}, {33}, {31, 33}, {32, 33}, {32, 33}, {32, 33}, {33}, {}};
// clang-format on
// Those who followed the instructor, number 0, when the club split; the others stayed with its officer, number 33.
const std::vector<int64_t> instructors = {0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 19, 21};

// Edges as two lists of nodes; each friendship in both directions, and each node with itself.
struct Graph {
  Tensor from, to, weight;
  int64_t nodes = 0;
};

Graph karate_club() {
  std::vector<int64_t> from, to;
  for (int64_t i = 0; i < int64_t(friends.size()); ++i) {
    from.push_back(i), to.push_back(i);
    for (const int64_t j : friends[size_t(i)]) {
      from.insert(from.end(), {i, j});
      to.insert(to.end(), {j, i});
    }
  }
  Graph graph{.from = tensor(from), .to = tensor(to), .weight = {}, .nodes = int64_t(friends.size())};
  const Tensor degree = zeros({graph.nodes}).index_add(0, graph.to, ones({graph.to.size(0)}));
  graph.weight = rsqrt(degree[graph.from] * degree[graph.to]).unsqueeze(1);
  return graph;
}

// Kipf and Welling 2016: each node takes the weighted sum of what its neighbours say.
struct GraphConv {
  int64_t in, out;
  nn::Linear fc{in, out, {.bias = false}};
  Tensor operator()(const Tensor& x, const Graph& graph) const {
    const Tensor messages = fc(x)[graph.from] * graph.weight;  // one to an edge
    return zeros({graph.nodes, out}).index_add(0, graph.to, messages);
  }
};

struct Net {
  GraphConv first{34, 16}, second{16, 2};
  Tensor operator()(const Tensor& x, const Graph& graph) const { return second(relu(first(x, graph)), graph); }
};

}  // namespace

int main(int count, char** arguments) {
  int steps = 200;
  for (int i = 1; i < count; ++i)
    if (std::string_view(arguments[i]) == "--short") steps = 60;

  manual_seed(1);
  const Graph graph = karate_club();
  const Tensor features = eye(graph.nodes);  // nothing is known of a member but who he is
  const Tensor truth = ones({graph.nodes}, {.dtype = i64}).index_fill(0, tensor(instructors), 0);
  const Tensor known = tensor({0, 33});
  std::printf("%lld members, %lld friendships, %lld labels\n", static_cast<long long>(graph.nodes),
              static_cast<long long>((graph.from.size(0) - graph.nodes) / 2), static_cast<long long>(known.size(0)));

  Net net;
  optim::Adam optimizer(parameters(net), {.lr = 0.01, .weight_decay = 5e-4});
  for (int step = 1; step <= steps; ++step) {
    optimizer.zero_grad();
    const Tensor loss = cross_entropy(net(features, graph)[known], truth[known]);
    loss.backward();
    optimizer.step();
    if (step % (steps / 4) == 0) std::printf("step %3d  loss of the two %.4f\n", step, loss.item<double>());
  }

  const NoGrad off;
  const Tensor answer = net(features, graph).argmax(1);
  for (const int64_t side : {0, 1}) {
    std::printf("with the %s:", side == 0 ? "instructor" : "officer   ");
    for (const int64_t i : (answer == side).nonzero().flatten().to_vector<int64_t>())
      std::printf(" %lld%s", static_cast<long long>(i), truth[i].item<int64_t>() == side ? "" : "!");
    std::printf("\n");
  }
  const int64_t right = (answer == truth).sum().item<int64_t>();
  std::printf("%lld of %lld are right\n", static_cast<long long>(right), static_cast<long long>(graph.nodes));
  return right >= 30 ? 0 : 1;
}
