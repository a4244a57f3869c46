// expect: struct with a base class
#include <volta/volta.h>
using namespace volta;

struct Base {
  nn::Linear a{2, 2};
};
struct Net : Base {
  nn::Linear b;
  int n;
};
int main() { return int(parameters(Net{{}, nn::Linear(2, 2), 1}).size()); }
