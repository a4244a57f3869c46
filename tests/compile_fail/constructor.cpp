// expect: since it is not an aggregate
#include <volta/volta.h>
using namespace volta;

class Hidden {
 public:
  explicit Hidden(int n) : fc(n, n) {}
  Tensor operator()(const Tensor& x) const { return fc(x); }
  nn::Linear fc;
};
struct Net {
  Hidden hidden{4};
};
int main() { return int(parameters(Net()).size()); }
