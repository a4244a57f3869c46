// expect: since it is not an aggregate
#include <volta/volta.h>

#include <vector>
using namespace volta;

class Layers {
 public:
  using value_type = nn::Linear;
  auto begin() { return list_.begin(); }
  auto end() { return list_.end(); }
  size_t size() const { return list_.size(); }

 private:
  std::vector<nn::Linear> list_{nn::Linear(2, 2)};
  nn::Linear last_{2, 2};
};
int main() { return int(parameters(Layers()).size()); }
