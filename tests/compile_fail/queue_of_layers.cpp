// expect: Volta cannot look into this class of the standard library
#include <volta/volta.h>

#include <queue>
using namespace volta;

struct Net {
  std::queue<nn::Linear> layers;
};
int main() { return int(parameters(Net()).size()); }
