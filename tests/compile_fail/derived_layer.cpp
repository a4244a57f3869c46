// expect: this class has its fields() from a base
#include <volta/volta.h>
using namespace volta;

struct LoRA : nn::Linear {
  LoRA() : nn::Linear(4, 4) {}
  nn::Parameter a = zeros({4, 2}), b = zeros({2, 4});
};
struct Net {
  LoRA fc;
};
int main() { return int(parameters(Net()).size()); }
