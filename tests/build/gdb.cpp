// What gdb prints of each type: see gdb.cmake.
#include <volta/volta.h>
using namespace volta;

void stop_here(const Tensor& x, const Shape& shape, const nn::Parameter& weight, const Tensor& nothing) {
  asm volatile("" : : "r"(&x), "r"(&shape), "r"(&weight), "r"(&nothing) : "memory");
}

int main() {
  const Tensor x = tensor({{1, 2}, {3, 4}});
  const nn::Linear fc(3, 2);
  stop_here(x, x.shape(), fc.weight, Tensor());
}
