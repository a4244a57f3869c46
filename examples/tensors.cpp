// Shows tensors and automatic differentiation in five minutes; run `tensors`.
#include <volta/volta.h>

#include <cmath>
#include <iostream>

using namespace volta;

namespace {

bool all_right = true;

void check(const char* what, bool right) {
  std::cout << (right ? "  yes: " : "  NO: ") << what << "\n";
  all_right = all_right && right;
}

void making() {
  std::cout << "Making tensors\n";
  const Tensor m = tensor({{1, 2, 3}, {4, 5, 6}});  // whole numbers are i64
  std::cout << m << "\n" << linspace(0, 1, 5) << "\n";
  check("a shape and a dtype", m.shape() == Shape{2, 3} && m.dtype() == i64);
  check("mixed dtypes promote", (m + 0.5).dtype() == f32);
  manual_seed(1);
  const Tensor first = randn({3});
  manual_seed(1);
  check("the same seed gives the same numbers", equal(first, randn({3})));
}

void viewing() {
  std::cout << "Views, broadcasting, reductions\n";
  Tensor m = arange(0, 6).to(f32).view({2, 3});
  Tensor column = m[{slice(), 1}];  // no copy: a window onto the same memory
  column += 10;
  std::cout << m << "\n";
  check("writing to a view writes to its base", m[{0, 1}].item<float>() == 11);
  check("transposing moves no element", m.t().data<float>() == m.data<float>());
  check("a row broadcasts over a matrix",
        equal(m + tensor({1.0, 2.0, 3.0}), m + tensor({{1.0, 2.0, 3.0}}).expand({2, 3})));
  check("softmax rows add up to one", allclose(softmax(m, -1).sum(-1), ones({2})));
  check("a mask selects", m[m > 5].numel() == 2);
}

void differentiating() {
  std::cout << "Gradients\n";
  const Tensor x = tensor({1.0, 2.0, 3.0}, {.dtype = f64, .requires_grad = true});
  const Tensor y = (x.pow(3) + x.sin()).sum();
  const Tensor slope = grad(y, x);  // returned; y.backward() would add it to x.grad()
  std::cout << slope << "\n";
  check("the slope is 3 x^2 + cos x", allclose(slope, 3 * x.detach().square() + x.detach().cos()));

  const auto cube = [](const Tensor& t) { return t.pow(3).sum(); };
  check("the second derivative of x^3 is 6 x", allclose(hessian(cube, x).diagonal(), 6 * x.detach()));
  check("gradients agree with differences", gradcheck([](const Tensor& t) { return t.exp() * t.cos(); }, x));
}

// Newton's method, for which the derivative is never written down.
void using_them() {
  std::cout << "The square root of 2 as the zero of x^2 - 2\n";
  Tensor x = tensor(1.0, {.dtype = f64});
  for (int i = 0; i < 6; ++i) {
    const Tensor at = x.detach().requires_grad_();
    const Tensor value = at * at - 2;
    x = x - value.detach() / grad(value, at);
  }
  std::cout.precision(14);
  std::cout << "  " << x.item<double>() << "\n";
  check("all digits are right", std::abs(x.item<double>() - std::sqrt(2.0)) < 1e-15);
}

void failing() {
  std::cout << "Errors are values where wanted, and say what is wrong\n";
  const auto result = attempt([] { return matmul(zeros({2, 3}), zeros({2, 3})); });
  if (!result) std::cout << "  " << result.error().what() << "\n";
  check("the shapes were refused", !result);
}

}  // namespace

// There is nothing to shorten: `--short` is taken, as by every example.
int main() {
  making();
  viewing();
  differentiating();
  using_them();
  failing();
  return all_right ? 0 : 1;
}
