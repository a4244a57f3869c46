// expect: Volta cannot
#include <volta/volta.h>
using namespace volta;

struct Later;
struct Net {
  Later* later = nullptr;
};
int main() { return int(parameters(Net()).size()); }
