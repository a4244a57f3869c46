// expect: a std::function may hold a layer
#include <volta/volta.h>

#include <functional>
using namespace volta;

struct Net {
  std::function<Tensor(const Tensor&)> layer = nn::Linear(2, 2);
};
int main() { return int(parameters(Net()).size()); }
