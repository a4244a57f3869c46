// expect: a model is a plain struct, no base class is needed
#include <volta/volta.h>
using namespace volta;

struct Net : nn::Module {
  nn::Linear fc{2, 2};
};
int main() {
  Net net;
  return net.fc.bias.defined();
}
