// Thousands of damaged files for every reader, the same in every run: a value or an Error, never anything else.
#include <functional>
#include <random>

#include "fuzz/io_readers.h"
#include "io_common.h"

namespace volta {
namespace {

const std::string data = VOLTA_TEST_DATA "/io/";

// One to four changes: bits, bytes, whole numbers of interest, cuts, repeats, pieces of another place.
std::string mutated(const std::string& whole, std::mt19937_64& random) {
  static constexpr uint64_t odd[] = {0,          1,          0x7f,       0x80,       0xff,       0xffff,
                                     0x7fffffff, 0x80000000, 0xffffffff, 1ull << 62, 1ull << 63, ~0ull};
  std::string text = whole;
  const auto below = [&](size_t n) { return n == 0 ? 0 : size_t(random() % n); };
  for (size_t n = 1 + below(4); n > 0 && !text.empty(); --n) {
    const size_t at = below(text.size());
    switch (below(7)) {
      case 0: text[at] = char(text[at] ^ 1 << below(8)); break;
      case 1: text[at] = char(random()); break;
      case 2: {
        const uint64_t value = odd[below(std::size(odd))];
        const size_t bytes = std::min<size_t>(size_t(1) << below(4), text.size() - at);
        for (size_t i = 0; i < bytes; ++i) text[at + i] = char(value >> 8 * i);
        break;
      }
      case 3: text.resize(at); break;
      case 4: text.erase(at, below(20)); break;
      case 5: text.insert(at, text.substr(below(text.size()), below(40))); break;
      default: text.replace(at, std::min<size_t>(8, text.size() - at), text.substr(below(text.size()), 8));
    }
  }
  return text;
}

void survive(const char* name, const std::vector<std::string>& seeds,
             const std::function<void(const std::string&)>& read) {
  std::mt19937_64 random(7);
  int read_well = 0;
  constexpr int rounds = 4000;
  for (const std::string& seed : seeds) ASSERT_TRUE(attempt([&] { read(seed); })) << name;
  for (int i = 0; i < rounds; ++i) {
    const std::string text = mutated(seeds[size_t(i) % seeds.size()], random);
    try {
      read(text);
      ++read_well;
    } catch (const Error& e) {
      EXPECT_FALSE(std::string(e.what()).empty());
    } catch (const std::exception& e) {
      FAIL() << name << ": not an Error but " << e.what() << ", round " << i;
    }
  }
  EXPECT_LT(read_well, rounds) << name;
}

TEST(IoFuzz, EveryReaderSurvivesMutation) {
  const Scratch dir;
  save_checkpoint(dir / "x", {.model = {{"w", known_values({3}, f32)}}, .scheduler = {{"a", 0.1}}, .step = 3});
  write_torch(dir / "y",
              TorchValue::dict({{"a", known_values({2, 2}, i16)}, {"b", TorchValue::list({1, 2.5, "text", true})}}));
  const auto file = [](const std::string& name) { return read_file(data + name); };
  survive("safetensors", {file("dtypes.safetensors"), file("names.safetensors")}, fuzz::read_safetensors);
  survive("index", {R"({"metadata":{"total_size":4},"weight_map":{"a":"x.safetensors","b":"y/z.safetensors"}})"},
          fuzz::read_index);
  survive("npy", {file("plain.npy"), file("vector.npy")}, fuzz::read_npy);
  survive("npz", {file("stored.npz"), file("deflated.npz")}, fuzz::read_npz);
  survive("gzip", {file("squares.gz")}, fuzz::read_gzip);
  survive("torch", {file("dtypes.pt"), file("nested.pt"), read_file(dir / "y"), file("optimizer_Adam.pt")},
          fuzz::read_torch);
  survive("checkpoint", {read_file(dir / "x")}, fuzz::read_checkpoint);
}

// What lies behind a checksum is reached by changing it before the sum is made.
TEST(IoFuzz, PicklesAndStates) {
  const Scratch dir;
  const std::string pickle = fuzz::pickle_of(data + "nested.pt"), other = fuzz::pickle_of(data + "optimizer_LBFGS.pt");
  survive("pickle", {pickle, other}, fuzz::read_pickle);
  save_checkpoint(
      dir / "x",
      {.model = {{"w", known_values({3}, f32)}}, .scheduler = {{"a", 0.1}}, .step = 3, .values = {{"k", "v"}}});
  survive("state", {read_safetensors_metadata(dir / "x").at("state")}, fuzz::read_checkpoint_state);
}

}  // namespace
}  // namespace volta
