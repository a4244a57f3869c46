// Shows models of PyTorch used here: a checkpoint that goes on learning, a GPT-2 with the names of the Hugging Face Hub,
// torchvision's ResNet-18 with a new last layer; run `pytorch [FOLDER] [--resnet18 FILE] [--short]`. What a map of names
// would do can be read before it is done. pytorch.py wrote the files in data/pytorch.
#include <models/gpt.h>
#include <models/resnet.h>

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>

using namespace volta;

namespace {

bool report(const std::string& what, bool right) {
  std::printf("%-58s %s\n", what.c_str(), right ? "yes" : "NO");
  return right;
}

// The network of pytorch.py, with names that we like better.
struct Net {
  nn::Conv2d conv1{1, 8, 3, {.padding = 1}};
  nn::BatchNorm2d norm1{8};
  nn::Conv2d conv2{8, 16, 3, {.padding = 1}};
  nn::BatchNorm2d norm2{16};
  nn::Linear head{16 * 3 * 3, 10};

  Tensor operator()(const Tensor& images) const {
    const Tensor x = max_pool2d(relu(norm1(conv1(images))), 2);
    return head(max_pool2d(relu(norm2(conv2(x))), 2).flatten(1));
  }
};

// A .pt file of a training loop: {"epoch": 6, "model": {…}, "optimizer": {…}, "accuracy": 0.97, "logits": …}.
bool checkpoint(const std::string& folder, int64_t epochs) {
  const TorchValue run = read_torch_value(folder + "/pytorch/digits.pt");
  const StateDict theirs = run.at("model").state_dict();
  const StateMap map = StateMap()
                           .strip_prefix("module.")
                           .rename_prefix("features.0.", "conv1.")
                           .rename_prefix("features.1.", "norm1.")
                           .rename_prefix("features.4.", "conv2.")
                           .rename_prefix("features.5.", "norm2.")
                           .rename_prefix("classifier.", "head.");
  std::cout << "digits.pt, after " << run.at("epoch").as_integer() << " epochs in PyTorch:\n" << map.plan(theirs).str();

  Net net;
  load_state_dict(net, map.apply(theirs));
  eval(net);
  data::DataLoader test(data::digits(folder + "/digits", {.train = false}), {.batch_size = 250});
  const auto accuracy = [&] { return evaluate(net, test, {.metrics = {metrics::Accuracy()}}).at("accuracy"); };
  const auto [images, labels] = data::digits(folder + "/digits", {.train = false}).tensors();
  const Tensor wanted = run.at("logits").as_tensor(), found = net(images.slice(0, 0, wanted.size(0)));
  bool right = report("its logits are PyTorch's", allclose(found.detach(), wanted, {.rtol = 1e-4, .atol = 1e-4}));
  const double before = accuracy();
  right &= report("its accuracy is PyTorch's", before == run.at("accuracy").as_number());

  // Layers in the same order need no rules.
  Net other;
  load_state_dict(other, StateMap().strip_prefix("module.").by_order(other).apply(theirs));
  right &= report("by_order gives the same weights", equal(other.conv2.weight, net.conv2.weight));

  // The optimizer goes on with its averages, at a rate of ours.
  optim::AdamW optimizer(parameters(net));
  optimizer.load_state_dict(optimizer_state_from_torch(run.at("optimizer")));
  optimizer.param_groups()[0].lr = 1e-3;
  optim::CosineAnnealingLR rate(optimizer, {.t_max = epochs});
  data::DataLoader training(data::digits(folder + "/digits"), {.batch_size = 50, .shuffle = true, .seed = 1});
  fit(net, training, optimizer, {.epochs = epochs, .scheduler = rate});
  const double after = accuracy();
  std::printf("test accuracy %.2f%%, after %lld more epochs here %.2f%%\n\n", 100 * before,
              static_cast<long long>(epochs), 100 * after);
  return right && after > 0.95;
}

// The Hub's names, and GPT-2's transposed weights: a ready map. The rules that follow are our own.
bool gpt2(const std::string& folder, int64_t letters) {
  const StateDict theirs = read_state(folder + "/pytorch/gpt2.safetensors");
  const StateMap map = maps::gpt2().exclude("test.*").cast(f32);
  const StatePlan plan = map.plan(theirs);
  std::cout << "gpt2.safetensors, some of its " << plan.lines.size() << " tensors:\n";
  for (const StatePlan::Line& line : plan.lines)
    if (!line.from.starts_with("transformer.h.1.") && !line.from.ends_with("bias"))
      std::cout << "  " << line.from << " -> " << (line.to.empty() ? "left out" : line.to) << "  (" << line.what
                << ")\n";

  const data::CharTokenizer tokenizer(data::read_text(folder + "/austen/pride-and-prejudice.txt"));
  models::GPT net{{.vocab = tokenizer.vocab_size(), .context = 64, .width = 36, .heads = 3, .layers = 2}};
  load_state_dict(net, map.apply(theirs));
  eval(net);
  const NoGrad off;
  const Tensor found = net(theirs.at("test.ids")).slice(1, -2, {});
  const bool right =
      report("its logits are PyTorch's", allclose(found, theirs.at("test.logits"), {.rtol = 1e-3, .atol = 1e-3}));
  const Tensor prompt = tensor(tokenizer.encode("\"I am ")).unsqueeze(0);
  const Tensor ids = models::generate(net, prompt, {.tokens = letters, .temperature = 0.6});
  std::printf("%s\n\n", tokenizer.decode(ids[0].to_vector<int64_t>()).c_str());
  return right;
}

// For ten classes of our own: all but the last layer.
bool resnet18(const std::string& file) {
  const StateDict theirs = read_state(file);
  const StateMap map = maps::resnet().exclude("fc.*");
  auto net = models::resnet18({.classes = 10});
  const LoadResult result = load_state_dict(net, map.apply(theirs), {.strict = false});
  std::cout << "ResNet-18: " << theirs.size() << " tensors in the file; not found:";
  for (const std::string& name : result.missing) std::cout << " " << name;
  std::cout << "\n";
  freeze(net);
  unfreeze(net.fc);
  std::printf("%lld of %lld parameters are left to train\n", static_cast<long long>(num_parameters(net, true)),
              static_cast<long long>(num_parameters(net)));
  return report("only the new layer is missing",
                result.missing.size() == 2 && result.unexpected.empty() && result.mismatched.empty());
}

}  // namespace

int main(int count, char** arguments) try {
  std::string folder = "data", resnet;
  bool brief = false;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    if (word == "--short") brief = true;
    else if (word == "--resnet18" && i + 1 < count) resnet = arguments[++i];
    else folder = word;
  }

  manual_seed(1);
  bool right = checkpoint(folder, brief ? 1 : 6);
  right &= gpt2(folder, brief ? 40 : 300);
  if (!resnet.empty()) return resnet18(resnet) && right ? 0 : 1;
  // Without torchvision's file, one of the same names and shapes.
  const auto file = std::filesystem::temp_directory_path() / ("volta_resnet18_" + std::to_string(::getpid()) + ".pt");
  write_torch(file.string(), state_dict(models::resnet18()));
  right &= resnet18(file.string());
  std::filesystem::remove(file);
  return right ? 0 : 1;
} catch (const Error& e) {
  return std::fprintf(stderr, "pytorch: %s\n", e.what()), 1;
}
