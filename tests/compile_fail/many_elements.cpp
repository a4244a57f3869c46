// expect: up to 32 members
#include <volta/volta.h>
using namespace volta;

struct Net {
  double table[100]{};
  nn::Linear fc{2, 2};
};
int main() { return int(parameters(Net()).size()); }
