// expect: write select(condition, a, b) for if
#include <volta/volta.h>
using namespace volta;

struct Positive {
  static constexpr auto name = "positive";
  template <class T> static constexpr T f(T x) {
    if (x > T(0)) return x;
    return T(0);
  }
};
int main() { return int(pointwise<Positive>(ones({2})).numel()); }
