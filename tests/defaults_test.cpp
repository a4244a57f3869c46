// DefaultDevice and DefaultDtype: what is made where, in which dtype, and what is left alone.
#include <gtest/gtest.h>

#include <sstream>
#include <thread>

#include <volta/volta.h>

#include "toy_device.h"

namespace volta::test {
namespace {

TEST(DefaultsDevice, HoldsForEveryFactory) {
  const Device toy = toy_device();
  const DefaultDevice on(toy);
  EXPECT_EQ(default_device(), toy);
  const std::vector<Tensor> made = {empty({2}),
                                    zeros({2}),
                                    ones({2}),
                                    full({2}, 3),
                                    arange(3),
                                    arange(0, 3, 0.5),
                                    linspace(0, 1, 3),
                                    logspace(0, 1, 3),
                                    eye(3),
                                    tri(3),
                                    tril_indices(3, 3),
                                    triu_indices(3, 3),
                                    rand({2}),
                                    randn({2}),
                                    randint(0, 5, {2}),
                                    uniform({2}, 0, 1),
                                    normal({2}, 0, 1),
                                    truncated_normal({2}, 0, 1, -2, 2),
                                    randperm(5),
                                    tensor({1, 2}),
                                    tensor<double>({1}),
                                    tensor(std::vector{1.f, 2.f}),
                                    tensor(std::vector<bool>{true}),
                                    sinusoidal_positions(4, 6)};
  for (size_t i = 0; i < made.size(); ++i) EXPECT_EQ(made[i].device(), toy) << i;
}

TEST(DefaultsDevice, GivesTheSameNumbers) {
  const auto draw = [] {
    manual_seed(7);
    return std::vector<Tensor>{rand({100}), randn({100}), randperm(20), randint(0, 9, {50}), eye(4), tri(4, 5, 1)};
  };
  const std::vector<Tensor> host = draw();
  const DefaultDevice on(toy_device());
  const std::vector<Tensor> there = draw();
  for (size_t i = 0; i < host.size(); ++i) EXPECT_TRUE(equal(there[i].to("cpu"), host[i])) << i;
}

TEST(DefaultsDevice, YieldsToWhatIsSaid) {
  const Device toy = toy_device();
  const Tensor host = ones({2});
  const DefaultDevice on(toy);
  EXPECT_EQ(zeros({2}, {.device = "cpu"}).device(), Device());
  EXPECT_EQ(zeros_like(host).device(), Device());
  EXPECT_EQ(host.new_zeros({3}).device(), Device());
  EXPECT_EQ((host + 1).device(), Device());
  EXPECT_EQ(bernoulli(host * 0.5).device(), Device());
  EXPECT_EQ(combinations(arange(4).to("cpu")).device(), Device());
  EXPECT_EQ(combinations(arange(4)).to("cpu").to_vector<int64_t>().size(), 12u);
  std::vector<float> memory{1, 2};
  EXPECT_EQ(from_blob(memory.data(), {2}).device(), Device());  // an address is the host's
}

TEST(DefaultsDevice, NestsAndIsTheThreadsOwn) {
  const Device toy = toy_device();
  EXPECT_EQ(default_device(), Device());
  {
    const DefaultDevice outer(toy);
    {
      const DefaultDevice inner("cpu");
      EXPECT_EQ(zeros({1}).device(), Device());
    }
    EXPECT_EQ(zeros({1}).device(), toy);
    Device there = toy;
    std::thread([&] { there = zeros({1}).device(); }).join();
    EXPECT_EQ(there, Device());
    EXPECT_THROW(DefaultDevice(Device(toy.type, 3)).~DefaultDevice(), Error);
    EXPECT_EQ(default_device(), toy);
  }
  EXPECT_EQ(zeros({1}).device(), Device());
}

struct Model {
  nn::Conv2d conv{1, 2, 3};
  nn::ConvTranspose2d up{2, 2, 3};
  nn::BatchNorm2d norm{2};
  nn::LayerNorm rows{{4}};
  nn::Linear fc{4, 4};
  nn::Bilinear pairs{2, 3, 4};
  nn::PReLU slopes{2};
  nn::Embedding words{10, 4};
  nn::LSTM lstm{4, 3};
  nn::GRUCell cell{4, 3};
  nn::MultiheadAttention attention{4, 2};
  nn::TransformerEncoderLayer block{4, 2, {.dim_feedforward = 8}};
};

TEST(DefaultsDevice, BuildsModelsThere) {
  manual_seed(8);
  const auto host = state_dict(Model());
  manual_seed(8);
  const Device toy = toy_device();
  const int64_t before = toy_traffic().uploads;
  const DefaultDevice on(toy);
  const Model model;
  EXPECT_EQ(toy_traffic().uploads, before);  // nothing was copied from the host
  const auto there = state_dict(model);
  ASSERT_EQ(there.size(), host.size());
  for (const auto& [name, x] : there) {
    EXPECT_EQ(x.device(), toy) << name;
    for (const auto& [other, y] : host)
      if (other == name) {
        EXPECT_TRUE(equal(x.to("cpu"), y)) << name;
      }
  }
}

TEST(DefaultsDevice, TrainsThere) {
  const DefaultDevice on(toy_device());
  manual_seed(9);
  const nn::Linear fc(4, 3);
  const Tensor x = randn({8, 4}), y = randint(0, 3, {8});
  std::vector<std::unique_ptr<optim::Optimizer>> all;
  all.push_back(std::make_unique<optim::NAdam>(parameters(fc)));
  all.push_back(std::make_unique<optim::ASGD>(parameters(fc)));
  all.push_back(std::make_unique<optim::AdamW>(parameters(fc)));
  for (const auto& opt : all) {
    for (int i = 0; i < 3; ++i) {
      opt->zero_grad();
      cross_entropy(fc(x), y).backward();
      (void)nn::clip_grad_norm_(parameters(fc), 1);
      opt->step();
    }
    opt->load_state_dict(opt->state_dict());
    EXPECT_EQ(opt->state_dict().state.at(0).at("step").device(), Device());  // a number of the host's
  }
}

TEST(DefaultsDevice, LeavesDataAndFilesOnTheHost) {
  const DefaultDevice on(toy_device());
  const auto table = data::parse_csv("a,b\n1,2.5\n3,4.5\n");
  EXPECT_EQ(table["a"].device(), Device());
  EXPECT_EQ(table["b"].device(), Device());
  std::vector<double> numbers{1, 2};
  EXPECT_EQ(data::default_collate(numbers).device(), Device());
}

TEST(DefaultsDtype, HoldsForFactoriesAndLayers) {
  EXPECT_EQ(default_dtype(), f32);
  {
    const DefaultDtype wide(f64);
    EXPECT_EQ(default_dtype(), f64);
    for (const Tensor& x : {zeros({2}), ones({2}), rand({2}), randn({2}), eye(2), linspace(0, 1, 3), tensor({0.5}),
                            full({2}, 0.5), arange(0, 1, 0.25), sqrt(arange(3)), arange(3) / 2})
      EXPECT_EQ(x.dtype(), f64);
    for (const Tensor& x : {arange(3), tensor({1, 2}), randint(0, 2, {2}), full({2}, 1)}) EXPECT_EQ(x.dtype(), i64);
    EXPECT_EQ(zeros({2}, {.dtype = f32}).dtype(), f32);
    EXPECT_EQ(tensor(std::vector{1.f}).dtype(), f32);
    for (const auto& [name, x] : state_dict(Model()))
      EXPECT_TRUE(x.dtype() == f64 || !is_floating(x.dtype())) << name << " " << volta::name(x.dtype());
    {
      const DefaultDtype narrow(bf16);
      EXPECT_EQ(zeros({2}).dtype(), bf16);
    }
    EXPECT_EQ(zeros({2}).dtype(), f64);
    DType there = f64;
    std::thread([&] { there = zeros({1}).dtype(); }).join();
    EXPECT_EQ(there, f32);
  }
  EXPECT_EQ(default_dtype(), f32);
  for (const DType wrong : {i32, boolean}) EXPECT_THROW(DefaultDtype(wrong).~DefaultDtype(), Error);
  EXPECT_EQ(default_dtype(), f32);
}

TEST(DefaultsDtype, CountsBeforeTheProcesss) {
  const DefaultDtype wide(f64);
  set_default_dtype(bf16);
  EXPECT_EQ(zeros({1}).dtype(), f64);
  DType there = f64;
  std::thread([&] { there = zeros({1}).dtype(); }).join();
  set_default_dtype(f32);
  EXPECT_EQ(there, bf16);
}

}  // namespace
}  // namespace volta::test
