// Sizes of any integer type, compiled with every warning about conversions as an error.
#include <array>
#include <vector>

#include <volta/volta.h>
using namespace volta;

int main() {
  const std::vector<float> values(6);
  const size_t n = values.size();
  const std::vector<size_t> sizes{2, 3};
  const std::array<int, 2> pair{2, 3};
  const Tensor x = zeros({n, 3}), row = x[n - 1], part = x[{n - 1, slice()}];
  bool fine = Shape{n, 3} == Shape{6, 3} && zeros(sizes).shape() == Shape{2, 3} && zeros(pair).shape() == Shape{2, 3};
  fine = fine && x.reshape({n, -1}).shape() == Shape{6, 3} && ones({n}).expand({2, n}).numel() == 12;
  fine = fine && pad(x, {n, 1}).shape() == Shape{6, 10} && split(x, {n - 2, size_t(2)})[0].size(0) == 4;
  fine = fine && split(x, {6}).size() == 1 && split(x, {2, n - 2}).size() == 2 && x.sum({n - 6, size_t(1)}).dim() == 0;
  fine = fine && row.shape() == Shape{3} && part.shape() == Shape{3} && x.shape()[n - 5] == 3 &&
         x.permute({1, n - 6}).size(0) == 3;
  const nn::Conv2d conv(3, 4, {n - 3, 3});
  return fine && conv.weight.shape()[2] == 3 && arange(n).numel() == 6 ? 0 : 1;
}
