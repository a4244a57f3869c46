// expect: the keys of a map of layers
#include <volta/volta.h>

#include <map>
using namespace volta;

struct Net {
  std::map<double, nn::Linear> layers;
};
int main() { return int(parameters(Net()).size()); }
