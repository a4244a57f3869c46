// expect: struct with a base class
#include <volta/volta.h>

#include <vector>
using namespace volta;

struct Stack : std::vector<nn::Linear> {
  nn::Linear last{2, 2};
};
int main() { return int(parameters(Stack()).size()); }
