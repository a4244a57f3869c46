// Shows weights in files: safetensors, PyTorch's and NumPy's, and names of others mapped to one's own; run `weights`.
#include <volta/volta.h>

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>

using namespace volta;

namespace {

struct Net {
  nn::Linear first{4, 8}, second{8, 2};
  Tensor operator()(const Tensor& x) const { return second(relu(first(x))); }
};

// As a file from elsewhere may have it: other names, a prefix, weights transposed, something to leave out.
StateDict foreign_state(const Net& net) {
  return {{"model.layers.0.kernel", net.first.weight.t().contiguous()},
          {"model.layers.0.bias", net.first.bias},
          {"model.layers.1.kernel", net.second.weight.t().contiguous()},
          {"model.layers.1.bias", net.second.bias},
          {"model.steps", tensor(1000)}};
}

bool same(const Net& a, const Net& b) {
  const Tensor x = ones({3, 4});
  return equal(a(x), b(x));
}

bool report(const char* what, bool right) {
  std::printf("%-58s %s\n", what, right ? "yes" : "NO");
  return right;
}

}  // namespace

// There is nothing to shorten: `--short` is taken, as by every example.
int main() {
  manual_seed(1);
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("volta_weights_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const auto path = [&](const char* name) { return (folder / name).string(); };
  const Net net;
  bool right = true;

  // One function writes a model; one reads any of the formats, which it tells from the content.
  save(net, path("net.safetensors"));
  write_torch(path("net.pt"), state_dict(net));  // torch.load("net.pt", weights_only=True)
  write_npz(path("net.npz"), state_dict(net));   // numpy.load("net.npz")
  for (const char* name : {"net.safetensors", "net.pt", "net.npz"}) {
    Net other;
    load(other, path(name));
    right &= report((std::string("the same results after loading ") + name).c_str(), same(net, other));
  }

  // What a file holds can be seen without reading the values.
  for (const TensorInfo& t : read_safetensors_info(path("net.safetensors")).tensors)
    std::cout << "  " << t.name << " " << t.shape << "\n";

  // A file whose names differ is refused, and nothing is changed.
  write_safetensors(path("foreign.safetensors"), foreign_state(net));
  Net mapped;
  const auto refused = attempt([&] { return load(mapped, path("foreign.safetensors")); });
  right &= report("foreign names are refused", !refused);

  // Rules, each applied to the results of those before; plan() says what they would do.
  const StateMap map = StateMap()
                           .exclude("model.steps")
                           .strip_prefix("model.")
                           .rename_prefix("layers.0.", "first.")
                           .rename_prefix("layers.1.", "second.")
                           .transpose_pattern("*.kernel")
                           .rename_pattern("*.kernel", "*.weight");
  const StateDict foreign = read_state(path("foreign.safetensors"));
  std::cout << map.plan(foreign).str();
  load_state_dict(mapped, map.apply(foreign));
  right &= report("the same results with names mapped", same(net, mapped));

  // Part of the weights: what fits is loaded, and the rest is named.
  write_safetensors(path("part.safetensors"), StateMap().select("first.*").apply(state_dict(net)));
  Net partial;
  const LoadResult difference = load(partial, path("part.safetensors"), {.strict = false});
  right &= report("a partial file leaves two names missing", difference.missing.size() == 2);
  right &= report("and fills the rest", equal(partial.first.weight, net.first.weight));

  std::filesystem::remove_all(folder);
  return right ? 0 : 1;
}
