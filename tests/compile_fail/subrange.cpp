// expect: cannot look into this class of the standard library
#include <volta/volta.h>

#include <ranges>
using namespace volta;

struct Net {
  std::ranges::subrange<nn::Linear*> blocks;
};
int main() { return int(parameters(Net()).size()); }
