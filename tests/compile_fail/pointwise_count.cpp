// expect: OperandsGiven<1>
// expect: OperandsOfTheFormula<2>
// expect: takes as many operands as the formula
#include <volta/volta.h>
using namespace volta;

struct Sum {
  static constexpr auto name = "sum_of_two";
  template <class T> static constexpr T f(T x, T y) { return x + y; }
};
int main() { return int(pointwise<Sum>(ones({2})).numel()); }
