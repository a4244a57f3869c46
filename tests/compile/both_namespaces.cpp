// A program that uses both namespaces whole, as many do: what it names must mean what it says.
#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <volta/volta.h>
using namespace std;
using namespace volta;

// Names that programs often give to their own.
struct Node {
  Node* next = nullptr;
};
struct Element {
  int row = 0;
};
struct List {
  Node* first = nullptr;
};
struct Size {
  int width = 0, height = 0;
};

struct Net {
  nn::Linear fc1{4, 8}, fc2{8, 2};
  Tensor operator()(const Tensor& x) const { return fc2(relu(fc1(x))); }
};

int main() {
  map<string, int> counts;
  ++counts["a"];
  List list;
  Element element;
  Size size;
  vector<double> numbers = {3, 1, 2};
  sort(numbers.begin(), numbers.end());
  for_each(numbers.begin(), numbers.end(), [](double& v) { v = max(v, 0.5) + min(v, 0.5) + abs(v); });
  function<double(double)> f = [](double v) { return exp(v) + pow(v, 2) + sqrt(v) + floor(v) + clamp(v, 0.0, 1.0); };
  double sum_of_all = 0;
  for (double v : numbers) sum_of_all += f(v);
  auto [a, b] = make_tuple(1, 2);
  tie(a, b) = make_pair(b, a);
  swap(a, b);
  plus<int> add_two;
  less<int> smaller;

  Tensor x = randn({3, 4}), e = empty({2, 3}), z = zeros({numbers.size(), 2});
  int64_t n = 2;
  Tensor e2 = empty({n, n}), e3 = empty({n, 3}), e4 = empty({2, 3}, {.dtype = f64});
  Tensor y = exp(x) + log(abs(x) + 1) - sqrt(square(x)) * pow(x, 2) / (sin(x) + 3);
  y = clamp(x, -1, 1) + clamp(x, zeros({1}), ones({1})) + max(x) - min(x, 1).values.sum();
  y = sort(x, 1).values + round(x) + floor(x) + fmod(x, 2) + remainder(x, 2) + norm(x) + mean(x);
  y = where(x > 0, x, 0) + cat({x, x}, 0).sum() + stack({x, x}).sum() + x[{slice(0, 1)}].sum();
  const bool same = equal(x, x) && allclose(x, x) && (x == x).all().item<bool>();
  Net net;
  optim::SGD optimizer(parameters(net), {.lr = 0.1});
  cross_entropy(net(x), tensor({0, 1, 0})).backward();
  optimizer.step();
  optimizer.zero_grad();
  ostringstream out;
  out << x << ' ' << x.shape() << ' ' << f32 << endl;
  cout << y.sum().item<float>() << '\n';
  const bool fine = same && counts.size() == 1 && !list.first && element.row == 0 && size.width == 0 && smaller(1, 2) &&
                    add_two(1, 2) == 3 && sum_of_all > 0 && e.shape() == Shape{2, 3} && e2.dim() == 2 &&
                    e3.shape() == Shape{2, 3} && e4.dtype() == f64 && z.shape() == Shape{3, 2};
  return fine ? 0 : 1;
}
