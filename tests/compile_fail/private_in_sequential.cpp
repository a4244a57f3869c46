// expect: since it is not an aggregate
#include <volta/volta.h>
using namespace volta;

class Hidden {
  nn::Linear fc{4, 4};

 public:
  Tensor operator()(const Tensor& x) const { return fc(x); }
};
int main() { return int(parameters(nn::Sequential(nn::ReLU(), Hidden())).size()); }
