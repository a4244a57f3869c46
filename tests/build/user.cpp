// A user's file: no header of Volta may warn in it, whatever is switched on.
#include <volta/volta.h>
using namespace volta;

struct Net {
  nn::Linear fc{4, 2};
  nn::Conv2d conv{1, 2, 3, {.padding = 1}};
  std::vector<nn::Linear> list;
  Tensor operator()(const Tensor& x) const { return relu(fc(x)); }
};
struct Small {
  nn::Conv2d conv{1, 6, 5, {.padding = 2}};
  nn::MaxPool2d pool{2};
  nn::AvgPool2d mean{{2, 1}, {.stride = 2}};
  Tensor operator()(const Tensor& x) const { return mean(pool(conv(x))); }
};
struct Bump {
  static constexpr auto name = "bump";
  template <class T> static constexpr T f(T x, T width) {
    using namespace volta::scalar;
    return select(x > T(0), exp(-(x * x) / width), tanh(x)) * cos(x);
  }
};

int main() {
  Net net;
  optim::AdamW opt(parameters(net), {.lr = 1e-3});
  Tensor x = randn({2, 4});
  x[0] = 1.0;
  const auto run = [net = Small{}, image = randn({1, 1, 28, 28})] { return net(image); };
  const Tensor y = pointwise<Bump>(x, 2.0);
  const nn::Sequential seq(nn::weight_norm(nn::Linear(1, 2)), nn::ReLU());
  return x.to_vector<float>().size() == 8 && y.numel() == 8 && parameters(seq).size() == 3 && run().dim() == 4 ? 0 : 1;
}
