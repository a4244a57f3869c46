// expect: UseSelectForIfAndVoltaScalarFunctionsForStd
#include <volta/volta.h>

using namespace volta;

struct Unqualified {
  static constexpr auto name = "growth";
  template <class T> static constexpr T f(T x) { return exp(x); }
};
int main() { return int(pointwise<Unqualified>(ones({2})).numel()); }
