// expect: a lambda may capture a layer
#include <volta/volta.h>
using namespace volta;

int main() {
  auto call = [fc = nn::Linear(2, 2)](const Tensor& x) { return fc(x); };
  struct Net {
    decltype(call) layer;
  };
  return int(parameters(Net{call}).size());
}
