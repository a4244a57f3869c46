// expect: void fields(nn::Fields& f)
#include <volta/volta.h>
using namespace volta;

struct Hidden {
  explicit Hidden(int n) : fc(n, n) {}
  Tensor forward(const Tensor& x, const Tensor& y) { return fc(x) + y; }
  nn::Linear fc;
};
struct Net {
  Hidden hidden{4};
};
int main() { return int(parameters(Net()).size()); }
