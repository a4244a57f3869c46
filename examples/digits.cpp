// Trains a small network on handwritten digits, with nothing but tensors and gradients.
//
//   digits [FOLDER] [--device cuda] [--epochs N] [--save FILE]
#include <volta/volta.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

using namespace volta;

namespace {

uint32_t big_endian(std::istream& in) {
  unsigned char b[4] = {};
  in.read(reinterpret_cast<char*>(b), 4);
  return uint32_t(b[0]) << 24 | uint32_t(b[1]) << 16 | uint32_t(b[2]) << 8 | b[3];
}

// An IDX file of bytes: a magic number 0x0000 08 rank, the sizes, then the values.
Tensor read_idx(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const uint32_t magic = big_endian(in), rank = magic & 0xff;
  if (!in || magic >> 8 != 8 || rank < 1 || rank > 4)
    throw Error(Error::Kind::io, "read_idx", path + " is not an IDX file of bytes");
  Shape shape;
  int64_t count = 1;
  for (uint32_t i = 0; i < rank; ++i) {
    shape.push_back(big_endian(in));
    count *= shape.back();
    if (!in || count > (1 << 28)) throw Error(Error::Kind::io, "read_idx", path + " has a bad header");
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  in.read(reinterpret_cast<char*>(bytes.data()), count);
  if (in.gcount() != count) throw Error(Error::Kind::io, "read_idx", path + " ends too early");
  return tensor(bytes, shape);
}

struct Digits {
  Tensor images, labels;  // [n, pixels] in [0, 1], and [n]
  Digits(const std::string& folder, const std::string& part, Device device)
      : images((read_idx(folder + "/" + part + "-images.idx").to(f32) / 255).flatten(1).to(device)),
        labels(read_idx(folder + "/" + part + "-labels.idx").to(i64).to(device)) {}
};

struct Layer {
  Tensor weight, bias;
  Layer(int64_t in, int64_t out, Device device)
      : weight((randn({out, in}, {.device = device}) * (1 / std::sqrt(double(in)))).requires_grad_()),
        bias(zeros({out}, {.device = device, .requires_grad = true})) {}
};

struct Network {
  Layer hidden, out;
  Tensor operator()(const Tensor& x) const {
    return linear(linear(x, hidden.weight, hidden.bias, {.activation = "relu"}), out.weight, out.bias);
  }
  std::vector<Tensor> parameters() const { return {hidden.weight, hidden.bias, out.weight, out.bias}; }
};

Tensor loss_of(const Tensor& logits, const Tensor& labels) {
  return -log_softmax(logits, 1).gather(1, labels.unsqueeze(1)).mean();
}

double accuracy(const Network& network, const Digits& set) {
  const NoGrad off;
  return (network(set.images).argmax(1) == set.labels).to(f32).mean().item<double>();
}

// Gradient descent with momentum, in place.
struct Descent {
  std::vector<Tensor> parameters, velocity;
  double rate, momentum;
  Descent(std::vector<Tensor> p, double r, double m) : parameters(std::move(p)), rate(r), momentum(m) {
    for (const Tensor& w : parameters) velocity.push_back(zeros_like(w));
  }
  void step(const std::vector<Tensor>& gradients) {
    const NoGrad off;
    for (size_t i = 0; i < parameters.size(); ++i) {
      velocity[i].mul_(momentum).add_(gradients[i]);
      parameters[i].sub_(velocity[i] * rate);
    }
  }
};

void show(int epoch, int epochs, int64_t done, int64_t total, double loss) {
  const int width = 28, filled = int(width * done / total);
  std::printf("\repoch %2d/%d [%.*s%*s] loss %.4f", epoch, epochs, filled, "############################",
              width - filled, "", loss);
  std::fflush(stdout);
}

// Little-endian values after a line of text each: "name [shape]".
void save(const Network& network, const std::string& path) {
  std::ofstream out(path, std::ios::binary);
  const char* names[] = {"hidden.weight", "hidden.bias", "out.weight", "out.bias"};
  const auto parameters = network.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::vector<float> values = parameters[i].detach().to_vector<float>();
    out << names[i] << " " << parameters[i].shape() << "\n";
    out.write(reinterpret_cast<const char*>(values.data()), std::streamsize(values.size() * sizeof(float)));
  }
  if (!out) throw Error(Error::Kind::io, "save", "cannot write " + path);
}

int run(const std::string& folder, Device device, int epochs, const std::string& file) {
  manual_seed(1);
  const Digits train(folder, "train", device), test(folder, "test", device);
  const int64_t n = train.images.size(0), batch = 64;
  const Network network{{train.images.size(1), 128, device}, {128, 10, device}};
  Descent descent(network.parameters(), 0.1, 0.9);
  std::printf("%lld digits to learn from, %lld to be tested on, %s\n", static_cast<long long>(n),
              static_cast<long long>(test.images.size(0)), device.str().c_str());
  const auto start = std::chrono::steady_clock::now();
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    const Tensor order = randperm(n, {.device = device});
    Tensor total = zeros({}, {.device = device});
    for (int64_t at = 0; at < n; at += batch) {
      const Tensor pick = order.slice(0, at, at + batch);
      const Tensor loss = loss_of(network(train.images.index_select(0, pick)), train.labels.index_select(0, pick));
      descent.step(grad(loss, network.parameters()));
      total += loss.detach() * double(pick.numel());
      if (at / batch % 16 == 0) show(epoch, epochs, at, n, total.item<double>() / double(at + pick.numel()));
    }
    show(epoch, epochs, n, n, total.item<double>() / double(n));
    std::printf("  test accuracy %.2f%%\n", 100 * accuracy(network, test));
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  save(network, file);
  std::printf("trained in %.1f s, saved to %s\n", seconds, file.c_str());
  return accuracy(network, test) > 0.9 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  std::string folder = "data/digits", device = "cpu", file = "digits.model";
  int epochs = 10;
  for (int i = 1; i < count; ++i) {
    const std::string a = arguments[i];
    const bool more = i + 1 < count;
    if (a == "--device" && more) device = arguments[++i];
    else if (a == "--epochs" && more) epochs = std::atoi(arguments[++i]);
    else if (a == "--save" && more) file = arguments[++i];
    else folder = a;
  }
  try {
    return run(folder, device, epochs, file);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
