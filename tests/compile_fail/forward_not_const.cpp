// expect: needs a const call operator from Tensor to Tensor
#include <volta/volta.h>
using namespace volta;

struct Block {
  nn::Linear fc{2, 2};
  Tensor forward(const Tensor& x) { return fc(x); }
};
int main() { return int(nn::Sequential(nn::ReLU(), Block()).size()); }
