// Trains LeNet-5 on handwritten digits.
//
//   digits [FOLDER] [--device cuda] [--epochs N] [--save FILE]
#include <models/lenet.h>

#include <chrono>
#include <cstdio>
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
  Tensor images, labels;  // [n, 1, 28, 28] with mean 0 and deviation 1, and [n]
  Digits(const std::string& folder, const std::string& part, Device device) {
    const Tensor pixels = read_idx(folder + "/" + part + "-images.idx").to(f32) / 255;
    images = interpolate(((pixels - 0.13) / 0.27).unsqueeze(1), {.size = {28, 28}, .mode = "bilinear"}).to(device);
    labels = read_idx(folder + "/" + part + "-labels.idx").to(i64).to(device);
  }
};

// The images moved by up to two pixels in either direction, all of a batch alike.
Tensor moved(const Tensor& images) {
  const Tensor by = randint(0, 5, {2});
  const int64_t down = by[0].item<int64_t>(), right = by[1].item<int64_t>();
  const Tensor wide = pad(images, {2, 2, 2, 2}, {.mode = "replicate"});
  return wide[{slice(), slice(), slice(down, down + 28), slice(right, right + 28)}];
}

double accuracy(models::LeNet5& network, const Digits& set) {
  eval(network);
  const NoGrad off;
  const double right = (network(set.images).argmax(1) == set.labels).to(f32).mean().item<double>();
  train(network);
  return right;
}

void show(int epoch, int epochs, int64_t done, int64_t total, double loss) {
  const int width = 28, filled = int(width * done / total);
  std::printf("\repoch %2d/%d [%.*s%*s] loss %.4f", epoch, epochs, filled, "############################",
              width - filled, "", loss);
  std::fflush(stdout);
}

// Little-endian values after a line of text each: "name [shape]".
void save(const models::LeNet5& network, const std::string& path) {
  std::ofstream out(path, std::ios::binary);
  for (const auto& [name, value] : state_dict(network)) {
    const std::vector<float> values = value.to_vector<float>();
    out << name << " " << value.shape() << "\n";
    out.write(reinterpret_cast<const char*>(values.data()), std::streamsize(values.size() * sizeof(float)));
  }
  if (!out) throw Error(Error::Kind::io, "save", "cannot write " + path);
}

int run(const std::string& folder, const Device& device, int epochs, const std::string& file) {
  manual_seed(1);
  const Digits training(folder, "train", device), test(folder, "test", device);
  const int64_t n = training.images.size(0), batch = 64, steps = (n + batch - 1) / batch;
  models::LeNet5 network;
  to(network, device);
  optim::AdamW optimizer(parameters(network), {.weight_decay = 0.05});
  optim::OneCycleLR rate(optimizer, {.max_lr = 4e-3, .total_steps = epochs * steps + 1});
  std::printf("%lld digits to learn from, %lld to be tested on, LeNet-5 with %lld parameters, %s\n",
              static_cast<long long>(n), static_cast<long long>(test.images.size(0)),
              static_cast<long long>(num_parameters(network)), device.str().c_str());
  const auto start = std::chrono::steady_clock::now();
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    const Tensor order = randperm(n, {.device = device});
    Tensor total = zeros({}, {.device = device});
    for (int64_t at = 0; at < n; at += batch) {
      const Tensor pick = order.slice(0, at, at + batch);
      optimizer.zero_grad();
      const Tensor loss =
          cross_entropy(network(moved(training.images.index_select(0, pick))), training.labels.index_select(0, pick));
      loss.backward();
      optimizer.step();
      rate.step();
      total += loss.detach() * double(pick.numel());
      if (at / batch % 16 == 0) show(epoch, epochs, at, n, total.item<double>() / double(at + pick.numel()));
    }
    show(epoch, epochs, n, n, total.item<double>() / double(n));
    std::printf("  test accuracy %.2f%%\n", 100 * accuracy(network, test));
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  save(network, file);
  std::printf("trained in %.1f s, saved to %s\n", seconds, file.c_str());
  return accuracy(network, test) >= 0.97 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  std::string folder = "data/digits", device = "cpu", file = "digits.model";
  int epochs = 20;
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
