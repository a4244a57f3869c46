// expect: struct with a base class
#include <volta/volta.h>
using namespace volta;

struct Base {
  nn::Linear a{2, 2};
};
struct Net : Base {
  nn::Linear b{2, 2};
};
int main() { return int(parameters(Net()).size()); }
