// The sequence cases in Volta: attention, and whole training steps of a character LSTM and a small GPT.
#include <volta/volta.h>

#include "sequence.h"

namespace bench {
namespace {

using namespace volta;

struct CharLSTM {
  nn::Embedding e{65, 64};
  nn::LSTM r{64, 256, {.batch_first = true}};
  nn::Linear o{256, 65};
  Tensor operator()(const Tensor& ids) const { return o(r(e(ids)).output); }
};

struct Block {
  std::int64_t width, heads;
  nn::LayerNorm n1{width}, n2{width};
  nn::Linear qkv{width, 3 * width}, o{width, width};
  nn::Sequential f{nn::Linear(width, 4 * width), nn::GELU(), nn::Linear(4 * width, width)};
  Tensor operator()(const Tensor& x) const {
    auto [b, t, d] = sizes<3>(x);
    const auto p = qkv(n1(x)).view({b, t, 3, heads, d / heads}).permute({2, 0, 3, 1, 4}).unbind();
    const Tensor y = scaled_dot_product_attention(p[0], p[1], p[2], {.is_causal = true});
    const Tensor z = x + o(y.transpose(1, 2).reshape({b, t, d}));
    return z + f(n2(z));
  }
};
struct GPT {
  nn::Embedding e{65, 128}, p{64, 128};
  std::vector<Block> b = nn::repeat<Block>(4, 128, 4);
  nn::LayerNorm n{128};
  nn::Linear o{128, 65};
  Tensor operator()(const Tensor& ids) const {
    Tensor x = e(ids) + p.weight.narrow(0, 0, ids.size(1));
    for (const Block& block : b) x = block(x);
    return o(n(x));
  }
};

template <class M, class O> auto step(std::int64_t batch, std::int64_t time) {
  return [=] {
    auto model = std::make_shared<M>();
    auto opt = std::make_shared<O>(parameters(*model));
    return [=, ids = randint(0, 65, {batch, time}), next = randint(0, 65, {batch * time})] {
      opt->zero_grad();
      cross_entropy((*model)(ids).reshape({-1, 65}), next).backward();
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
        const auto matrix = [=] { return randn({2, 8, time, 64}, {.requires_grad = grad}); };
        return [=, q = matrix(), k = matrix(), v = matrix()] {
          return scaled_dot_product_attention(q, k, v, {.is_causal = causal});
        };
      };
      cases.push_back({"attention_f/" + size, [=] { return attend(false); }, attention_flops(time, causal, 2)});
      cases.push_back({"attention_fb/" + size, [=] { return [f = attend(true)] { f().sum().backward(); }; },
                       attention_flops(time, causal, 7)});
    }
  }
  cases.push_back({"step/char_lstm_256_b32_t64_adam", step<CharLSTM, optim::Adam>(32, 64)});
  cases.push_back({"step/gpt_d128_l4_b16_t64_adamw", step<GPT, optim::AdamW>(16, 64)});
}

}  // namespace bench
