// expect: Volta cannot
#include <volta/volta.h>
using namespace volta;

struct Net {
  void* layer = nullptr;
};
int main() { return int(parameters(Net()).size()); }
