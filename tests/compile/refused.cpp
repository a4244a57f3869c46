// Mistakes that the compiler must find. With CASE 0 none is made, and the file compiles.
#include <volta/volta.h>
using namespace volta;

int main() {
  Tensor x = ones({3});
#if CASE == 1
  NoGrad();
#elif CASE == 2
  InferenceMode();
#elif CASE == 3
  DetectAnomaly();
#elif CASE == 4
  x.exp();
#elif CASE == 5
  add(x, 1);
#elif CASE == 6
  x + 1;
#elif CASE == 7
  zeros({3});
#elif CASE == 8
  Tensor& y = (x * 2).relu_();
  y.add_(1);
#elif CASE == 9
  const Tensor g = grad({x.sum()}, {x});
#elif CASE == 10
  x = x.var(false);
#elif CASE == 11
  x = x.sum(true);
#elif CASE == 12
  x = x[true];
#elif CASE == 13
  x = x[{slice(), true}];
#elif CASE == 14
  nn::Linear fc(true, 2);
#elif CASE == 15
  x = max_pool1d(x, true);
#elif CASE == 16
  nn::Linear layer(3, 3);
  nn::weight_norm(layer);
#elif CASE == 17
  checkpoint([](const Tensor& t) { return t * 2; }, x);
#elif CASE == 18
  gradcheck([](const Tensor& t) { return t * 2; }, x);
#elif CASE == 19
  nn::SharedCopies();
#elif CASE == 20
  jacobian([](const Tensor& t) { return t * 2; }, x);
#elif CASE == 21
  const Device device(nullptr);
#endif
  x.add_(1);
  x[0].fill_(2);
  ones({2}).add_(1);
  return x.sum().item<float>() > 0 ? 0 : 1;
}
