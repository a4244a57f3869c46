// fit in mixed precision: against the loop written by hand, on digits, and where gradients overflow.
#include <gtest/gtest.h>

#include <cmath>

#include "train_common.h"

namespace volta::test {
namespace {

TEST(TrainMixed, EqualsTheLoopWrittenByHand) {
  const Pairs data = batches(7, 16, 1);
  for (const DType half : {bf16, f16}) {
    Net by_hand = seeded_net();
    optim::AdamW own(parameters(by_hand), {.lr = 1e-2});
    // The first steps overflow, and the scale grows again.
    GradScaler a({.init_scale = 0x1p40, .growth_interval = 3, .enabled = half == f16}), b = a;
    manual_seed(9);
    for (int epoch = 0; epoch < 8; ++epoch)
      for (const auto& [x, y] : data) {
        own.zero_grad();
        Tensor loss;
        {
          const Autocast guard(half);
          loss = cross_entropy(by_hand(x), y);
        }
        a.scale(loss).backward();
        a.unscale_(own);
        nn::clip_grad_norm_(parameters(by_hand), 1.0);
        a.step(own);
        a.update();
      }
    Net net = seeded_net();
    optim::AdamW optimizer(parameters(net), {.lr = 1e-2});
    manual_seed(9);
    const History history = fit(net, data, optimizer,
                                {.epochs = 8,
                                 .validation = data,
                                 .metrics = {metrics::Accuracy()},
                                 .max_grad_norm = 1.0,
                                 .autocast = half,
                                 .scaler = &b});
    EXPECT_TRUE(same(net, by_hand));
    EXPECT_EQ(b.state_dict(), a.state_dict());
    EXPECT_EQ(net.in.weight.dtype(), f32);
    EXPECT_GT(history.epochs.back().values.at("val_accuracy"), 0.8);
    const Dict<double> again = evaluate(net, data, {.autocast = half});
    EXPECT_EQ(again.at("loss"), history.epochs.back().values.at("val_loss"));
    EXPECT_NE(again.at("loss"), evaluate(net, data).at("loss"));
  }
}

TEST(TrainMixed, LearnsDigits) {
  const auto digits = data::digits(VOLTA_TEST_DATA "/../../data/digits");
  const data::TensorDataset some(digits.tensors()[0].slice(0, 0, 512), digits.tensors()[1].slice(0, 0, 512));
  const auto losses = [&](std::optional<DType> half) {
    manual_seed(1);
    auto net = nn::Sequential(nn::Flatten(), nn::Linear(196, 32), nn::ReLU(), nn::Linear(32, 10));
    optim::Adam adam(parameters(net), {.lr = 1e-2});
    data::DataLoader loader(some, {.batch_size = 32});
    return fit(net, loader, adam, {.epochs = 8, .autocast = half}).values("loss");
  };
  const std::vector<double> full = losses({});
  for (const DType half : {bf16, f16}) {
    const std::vector<double> mixed = losses(half);
    EXPECT_LT(mixed.back(), 0.3);
    EXPECT_NEAR(mixed.back(), full.back(), 0.05);
    EXPECT_NE(mixed.back(), full.back());
  }
}

// A batch whose gradients overflow in f16 is left out, and the next one is scaled by less.
TEST(TrainMixed, SkipsWhatOverflows) {
  const Pairs data = batches(6, 8, 1);
  nn::Linear model(4, 3);
  optim::SGD sgd(parameters(model), {.lr = 0.1});
  GradScaler scaler({.init_scale = 0x1p30});
  const History history = fit(model, data, sgd, {.non_finite = "skip", .autocast = f16, .scaler = &scaler});
  EXPECT_GT(history.epochs[0].skipped, 0);
  EXPECT_EQ(history.epochs[0].step + history.epochs[0].skipped, 6);
  EXPECT_EQ(scaler.get_scale(), std::ldexp(1.0, 30 - int(history.epochs[0].skipped)));
  EXPECT_TRUE(isfinite(model.weight).all().item<bool>());
}

}  // namespace
}  // namespace volta::test
