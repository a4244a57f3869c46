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
  // One size where one is asked for, also in options.
  const nn::Linear linear(n, 2);
  const nn::LayerNorm norm(n), norms({n, 2}), listed({4}), counted({n});
  const nn::RMSNorm root({4}), roots({n});
  const nn::LSTM lstm(n, n, {.num_layers = n - 4});
  const nn::Conv2d grouped(n, n, 3, {.groups = n});
  const nn::Embedding table(n, 2, {.padding_idx = n - 1});
  const nn::TransformerEncoderLayer block(n, n - 4, {.dim_feedforward = n});
  const nn::MultiheadAttention attention(n, n - 4, {.kdim = n});
  const auto blocks = nn::repeat<nn::Linear>(n - 4, n, n);
  optim::AdamW opt(parameters(linear));
  const optim::OneCycleLR schedule(opt, {.max_lr = 1, .epochs = 2, .steps_per_epoch = n});
  fine = fine && linear.weight.size(1) == 6 && norm.weight.numel() == 6 && norms.weight.numel() == 12 &&
         listed.weight.numel() == 4 && counted.weight.numel() == 6 && root.weight.numel() == 4 &&
         roots.weight.numel() == 6 && parameters(lstm).size() == 8 && grouped.weight.size(1) == 1 &&
         table.weight.size(0) == 6 && blocks.size() == 2 && attention.head_dim == 3 &&
         block.linear1.weight.size(0) == 6;
  fine = fine && eye(n).numel() == 36 && eye(n, n - 4).numel() == 12 && linspace(0, 1, n).numel() == 6 &&
         randperm(n).numel() == 6 && randint(0, n, {n}).numel() == 6 && tril_indices(n, n).size(1) == 21;
  // A count beyond 63 bits is no negative one.
  try {
    const nn::Linear huge(SIZE_MAX, 2);
    fine = false;
  } catch (const Error&) {}
  return fine && conv.weight.shape()[2] == 3 && arange(n).numel() == 6 ? 0 : 1;
}
