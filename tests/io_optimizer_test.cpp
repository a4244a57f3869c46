// The state of every optimizer that PyTorch has: read from its files, continued as it continues, and written back the same.
#include "io_common.h"

namespace volta {
namespace {

const std::string data = VOLTA_TEST_DATA "/io/optimizer_";
using Kind = TorchValue::Kind;

bool is_number(const TorchValue& v) { return v.is(Kind::integer) || v.is(Kind::real); }

// Equal to the bit; numbers may be whole or not, as Python sees them.
void expect_equal(const TorchValue& a, const TorchValue& b, const std::string& where) {
  if (is_number(a) && is_number(b)) {
    EXPECT_EQ(a.as_number(), b.as_number()) << where;
    return;
  }
  ASSERT_EQ(name(a.kind()), name(b.kind())) << where;
  if (a.is(Kind::truth)) {
    EXPECT_EQ(a.as_boolean(), b.as_boolean()) << where;
  }
  if (a.is(Kind::string)) {
    EXPECT_EQ(a.as_string(), b.as_string()) << where;
  }
  if (a.is(Kind::tensor)) {
    EXPECT_TRUE(same(a.as_tensor(), b.as_tensor())) << where;
  }
  if (a.is(Kind::list) || a.is(Kind::tuple)) {
    ASSERT_EQ(a.items().size(), b.items().size()) << where;
    for (size_t i = 0; i < a.items().size(); ++i)
      expect_equal(a.items()[i], b.items()[i], where + "[" + std::to_string(i) + "]");
  }
  if (!a.is(Kind::dict)) return;
  EXPECT_EQ(a.entries().size(), b.entries().size()) << where;
  for (const auto& [key, value] : a.entries()) {
    const std::string next = where + "." + (key.is(Kind::string) ? key.as_string() : std::to_string(key.as_integer()));
    ASSERT_TRUE(b.contains(key)) << next;
    expect_equal(value, b.at(key), next);
  }
}

struct Run {
  std::vector<Tensor> weights;
  void train(optim::Optimizer& optimizer, int steps) const {
    for (int i = 0; i < steps; ++i)
      optimizer.step([&] {
        optimizer.zero_grad();
        Tensor loss = (weights[0] - 0.5).pow(2).sum() + ((weights[1] - 0.5).pow(2) * 2).sum();
        loss.backward();
        return loss;
      });
  }
};

template <class Optimizer> void check(const std::string& file, const typename Optimizer::Options& options) {
  SCOPED_TRACE(file);
  const TorchValue saved = read_torch_value(data + file + ".pt");
  Run run;
  for (const TorchValue& w : saved.at("before").items()) run.weights.push_back(w.as_tensor().clone().requires_grad_());
  const optim::Params params = file == "LBFGS"
                                   ? optim::Params(run.weights)
                                   : optim::Params({{.params = {run.weights[0]}}, {.params = {run.weights[1]}}});
  Optimizer optimizer(params, options);
  optimizer.load_state_dict(optimizer_state_from_torch(saved.at("optimizer")));
  const TorchValue written = optimizer_state_to_torch(optimizer.state_dict(), optimizer.name());
  if (file != "LBFGS") {
    expect_equal(saved.at("optimizer"), written, file);
  } else {  // its lists al and prev_loss are not kept
    for (const char* key : {"func_evals", "n_iter", "d", "t", "old_dirs", "old_stps", "H_diag", "prev_flat_grad"})
      expect_equal(saved.at("optimizer").at("state").at(0).at(key), written.at("state").at(0).at(key), key);
  }
  const Scratch dir;
  write_torch(dir / "x.pt", written);
  expect_equal(written, read_torch_value(dir / "x.pt"), file);
  run.train(optimizer, 2);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_TRUE(
        allclose(run.weights[i].detach(), saved.at("after").items()[i].as_tensor(), {.rtol = 2e-6, .atol = 1e-7}));
}

TEST(IoOptimizer, StatesOfPyTorch) {
  check<optim::SGD>("SGD", {.lr = 1, .momentum = 0.9, .nesterov = true});
  check<optim::SGD>("SGD_plain", {.lr = 1});
  check<optim::Adam>("Adam", {.lr = 1, .amsgrad = true});
  check<optim::AdamW>("AdamW", {.lr = 1});
  check<optim::Adamax>("Adamax", {});
  check<optim::NAdam>("NAdam", {});
  check<optim::RAdam>("RAdam", {});
  check<optim::RMSprop>("RMSprop", {.momentum = 0.5, .centered = true});
  check<optim::Adagrad>("Adagrad", {});
  check<optim::Adadelta>("Adadelta", {});
  check<optim::ASGD>("ASGD", {});
  check<optim::Rprop>("Rprop", {});
  check<optim::Adafactor>("Adafactor", {});
  check<optim::Muon>("Muon", {});
  check<optim::LBFGS>("LBFGS", {.lr = 0.1, .max_iter = 3});
}

TEST(IoOptimizer, Refusals) {
  expect_in("no key 'state'", error_of([] { return optimizer_state_from_torch(TorchValue::dict()); }));
  expect_in("not a dict", error_of([] { return optimizer_state_from_torch(3); }));
  expect_in("no optimizer 'Lion'", error_of([] { return optimizer_state_to_torch({}, "Lion"); }));
}

}  // namespace
}  // namespace volta
