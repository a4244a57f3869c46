// The sequence cases in LibTorch C++; sequence_volta.cpp holds the same under the same names.
#include <torch/torch.h>

#include "sequence.h"

namespace bench {
namespace {

using torch::Tensor;
namespace nn = torch::nn;

struct CharLSTMImpl : nn::Module {
  nn::Embedding e = register_module("e", nn::Embedding(65, 64));
  nn::LSTM r = register_module("r", nn::LSTM(nn::LSTMOptions(64, 256).batch_first(true)));
  nn::Linear o = register_module("o", nn::Linear(256, 65));
  Tensor forward(const Tensor& ids) { return o(std::get<0>(r(e(ids)))); }
};

struct BlockImpl : nn::Module {
  BlockImpl(std::int64_t d, std::int64_t h)
      : heads(h),
        n1(register_module("n1", nn::LayerNorm(nn::LayerNormOptions({d})))),
        n2(register_module("n2", nn::LayerNorm(nn::LayerNormOptions({d})))),
        qkv(register_module("qkv", nn::Linear(d, 3 * d))),
        o(register_module("o", nn::Linear(d, d))),
        f(register_module("f", nn::Sequential(nn::Linear(d, 4 * d), nn::GELU(), nn::Linear(4 * d, d)))) {}
  Tensor forward(const Tensor& x) {
    const std::int64_t b = x.size(0), t = x.size(1), d = x.size(2);
    const auto p = qkv(n1(x)).view({b, t, 3, heads, d / heads}).permute({2, 0, 3, 1, 4}).unbind();
    const Tensor y = torch::scaled_dot_product_attention(p[0], p[1], p[2], {}, 0, true);
    const Tensor z = x + o(y.transpose(1, 2).reshape({b, t, d}));
    return z + f->forward(n2(z));
  }
  std::int64_t heads;
  nn::LayerNorm n1, n2;
  nn::Linear qkv, o;
  nn::Sequential f;
};
TORCH_MODULE(Block);
struct GPTImpl : nn::Module {
  nn::Embedding e = register_module("e", nn::Embedding(65, 128)), p = register_module("p", nn::Embedding(64, 128));
  nn::Sequential b = register_module("b", nn::Sequential(Block(128, 4), Block(128, 4), Block(128, 4), Block(128, 4)));
  nn::LayerNorm n = register_module("n", nn::LayerNorm(nn::LayerNormOptions({128})));
  nn::Linear o = register_module("o", nn::Linear(128, 65));
  Tensor forward(const Tensor& ids) { return o(n(b->forward(e(ids) + p->weight.narrow(0, 0, ids.size(1))))); }
};

template <class M, class O> auto step(std::int64_t batch, std::int64_t time) {
  return [=] {
    auto model = std::make_shared<M>();
    auto opt = std::make_shared<O>(model->parameters());
    return [=, ids = torch::randint(0, 65, {batch, time}, torch::kInt64),
            next = torch::randint(0, 65, {batch * time}, torch::kInt64)] {
      opt->zero_grad();
      nn::functional::cross_entropy(model->forward(ids).reshape({-1, 65}), next).backward();
      opt->step();
    };
  };
}

}  // namespace

void add_sequence(std::vector<Case>& cases) {
  for (const std::int64_t time : attention_times) {
    for (const bool causal : {false, true}) {
      const std::string size = std::to_string(time) + (causal ? "_causal" : "");
      const auto attend = [=](bool grad) {
        const auto matrix = [=] { return torch::randn({2, 8, time, 64}, torch::requires_grad(grad)); };
        return [=, q = matrix(), k = matrix(), v = matrix()] {
          return torch::scaled_dot_product_attention(q, k, v, {}, 0, causal);
        };
      };
      cases.push_back({"attention_f/" + size, [=] { return attend(false); }, attention_flops(time, causal, 2)});
      cases.push_back({"attention_fb/" + size, [=] { return [f = attend(true)] { f().sum().backward(); }; },
                       attention_flops(time, causal, 7)});
    }
  }
  cases.push_back({"step/char_lstm_256_b32_t64_adam", step<CharLSTMImpl, torch::optim::Adam>(32, 64)});
  cases.push_back({"step/gpt_d128_l4_b16_t64_adamw", step<GPTImpl, torch::optim::AdamW>(16, 64)});
}

}  // namespace bench
