// expect: UseSelectForIfAndVoltaScalarFunctionsForStd
#include <volta/volta.h>

#include <cmath>
using namespace volta;

struct Growth {
  static constexpr auto name = "growth";
  template <class T> static constexpr T f(T x) { return std::exp(x); }
};
int main() { return int(pointwise<Growth>(ones({2})).numel()); }
