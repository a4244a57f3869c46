// expect: one is a reference
#include <volta/volta.h>
using namespace volta;

struct Net {
  nn::Linear& shared;
};
int main() {
  nn::Linear fc(2, 2);
  return int(parameters(Net{fc}).size());
}
