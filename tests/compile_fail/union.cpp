// expect: Volta cannot
#include <volta/volta.h>
using namespace volta;

union Either {
  nn::Linear* a;
  nn::Conv2d* b;
};
struct Net {
  Either either{};
};
int main() { return int(parameters(Net()).size()); }
