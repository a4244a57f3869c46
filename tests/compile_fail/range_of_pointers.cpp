// expect: this struct looks like a range
#include <volta/volta.h>
using namespace volta;

struct Blocks {
  nn::Linear* first = nullptr;
  size_t count = 0;
  nn::Linear* begin() const { return first; }
  nn::Linear* end() const { return first + count; }
};
struct Net {
  Blocks blocks;
  nn::Linear last{2, 2};
};
int main() { return int(parameters(Net()).size()); }
