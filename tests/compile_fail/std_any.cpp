// expect: Volta cannot
#include <volta/volta.h>

#include <any>
using namespace volta;

struct Net {
  std::any layer = nn::Linear(2, 2);
};
int main() { return int(parameters(Net()).size()); }
