// expect: this struct looks like a range
#include <volta/volta.h>
using namespace volta;

struct Part {
  nn::Linear* data = nullptr;
  size_t size = 0;
};
struct Blocks {
  Part part;
  nn::Linear& operator[](size_t i) const { return part.data[i]; }
};
int main() { return int(parameters(Blocks()).size()); }
