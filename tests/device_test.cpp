// A device that registers itself: found by its name, and used like any other.
#include <gtest/gtest.h>
#include <volta/volta.h>

#include <algorithm>

#include "backend/backend.h"
#include "core/device_names.h"
#include "samples.h"
#include "toy_device.h"

namespace volta::test {
namespace {

TEST(ApiDevices, RegisteredOnesAreFoundByName) {
  EXPECT_EQ(Device("toy"), toy_device());
  EXPECT_EQ(toy_device().str(), "toy:0");
  EXPECT_NE(toy_device(), Device("cpu"));
  const auto says = [](auto f) { return std::string(attempt(f).error().what()); };
  EXPECT_NE(says([] { return Device("top"); }).find("\"toy\""), std::string::npos);
  EXPECT_NE(says([] { return zeros({2}, {.device = "toy:1"}); }).find("one toy"), std::string::npos);
  EXPECT_NE(says([] { return register_device("toy", nullptr); }).find("already"), std::string::npos);
}

// The generated suites run over the devices that are registered, without a list of them.
TEST(ApiDevices, RegisteredOnesAreTested) {
  const std::vector<Device> all = all_devices();
  for (int type = int(DeviceType::cuda) + 1; type < device_type_count(); ++type)
    EXPECT_EQ(std::count(all.begin(), all.end(), Device(DeviceType(type))), 1) << device_name(DeviceType(type));
  EXPECT_EQ(all.size(), devices().size() + size_t(device_type_count() - 2));
}

// Every optimizer steps there as on the CPU, by expressions of tensors where the device has no loop of its own.
TEST(OptimDevices, StepsAreTheSameOnEveryDevice) {
  const auto trained = [](const char* device, auto make) {
    manual_seed(3);
    std::vector<Tensor> params{randn({5, 4}), randn({4})};
    for (Tensor& p : params) p = p.to(device).requires_grad_();
    const auto optimizer = make(params);
    for (int i = 0; i < 4; ++i) {
      optimizer->zero_grad();
      (params[0] * params[1]).square().sum().backward();
      optimizer->step();
    }
    return cat({params[0].detach().flatten(), params[1].detach()}).to("cpu");
  };
  const auto each = [&]<class O>(std::type_identity<O>, const char* name, typename O::Options options) {
    const auto make = [&](const std::vector<Tensor>& p) { return std::make_unique<O>(p, options); };
    EXPECT_TRUE(allclose(trained("cpu", make), trained("toy", make), {.rtol = 1e-5, .atol = 1e-6})) << name;
  };
  each(std::type_identity<optim::SGD>(), "SGD", {.lr = 0.01});
  each(std::type_identity<optim::SGD>(), "momentum", {.lr = 0.01, .momentum = 0.9, .nesterov = true});
  each(std::type_identity<optim::Adam>(), "Adam", {.lr = 0.01, .weight_decay = 0.1});
  each(std::type_identity<optim::Adam>(), "amsgrad", {.lr = 0.01, .amsgrad = true});
  each(std::type_identity<optim::Adamax>(), "Adamax", {.lr = 0.01});
  each(std::type_identity<optim::NAdam>(), "NAdam", {.lr = 0.01});
  each(std::type_identity<optim::RAdam>(), "RAdam", {.lr = 0.01});
  each(std::type_identity<optim::RMSprop>(), "RMSprop", {.lr = 0.01});
  each(std::type_identity<optim::RMSprop>(), "RMSprop centered", {.lr = 0.01, .momentum = 0.9, .centered = true});
  each(std::type_identity<optim::Adagrad>(), "Adagrad", {.lr = 0.01});
  each(std::type_identity<optim::Adadelta>(), "Adadelta", {.lr = 0.1});
  each(std::type_identity<optim::Lion>(), "Lion", {.lr = 0.01});
  each(std::type_identity<optim::ASGD>(), "ASGD", {.lr = 0.01});
  each(std::type_identity<optim::Rprop>(), "Rprop", {.lr = 0.01});
  each(std::type_identity<optim::LAMB>(), "LAMB", {.lr = 0.01});
}

// The toy cannot tell before it gathers where indices lie: one past the end of an axis must not read the next row.
TEST(IndexDevices, IndicesOfSeveralAxesAreEachChecked) {
  const Tensor x = arange(6).reshape({2, 3}).to(toy_device());
  const auto at = [&](int64_t i, int64_t j) {
    return x[{tensor({i}).to(toy_device()), tensor({j}).to(toy_device())}].to("cpu").item<int64_t>();
  };
  EXPECT_EQ(at(1, 0), 3);
  EXPECT_EQ(at(0, -1), 2);
  for (const auto& [i, j] : {std::pair{0, 3}, {0, -4}, {2, 0}, {-3, 0}})
    EXPECT_THROW((void)at(i, j), Error) << i << ", " << j;
}

}  // namespace
}  // namespace volta::test
