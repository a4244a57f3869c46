// Shows translation: a transformer of encoder and decoder learns to write numbers said in words as digits; run
// `translation [--short]`. Sentences of different lengths, the masks that go with them, teacher forcing, greedy decoding.
#include <volta/volta.h>

#include <cmath>
#include <cstdio>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

using namespace volta;

namespace {

// Tokens that both languages have; words, and digits, are counted on from 3.
constexpr int64_t filler = 0, start = 1, stop = 2, first = 3;

constexpr std::string_view words[] = {
    "zero",   "one",    "two",    "three",    "four",     "five",    "six",     "seven",     "eight",    "nine",
    "ten",    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
    "twenty", "thirty", "forty",  "fifty",    "sixty",    "seventy", "eighty",  "ninety",    "hundred",  "thousand"};
constexpr int64_t hundred = 28, thousand = 29;

void append(std::vector<int64_t>& said, int64_t n) {
  if (n >= 1000) append(said, n / 1000), said.push_back(first + thousand);
  if (n % 1000 >= 100) append(said, n % 1000 / 100), said.push_back(first + hundred);
  int64_t rest = n % 100;
  if (rest >= 20) said.push_back(first + 18 + rest / 10), rest %= 10;
  if (rest > 0) said.push_back(first + rest);
}

// 407012: four hundred seven thousand twelve.
std::vector<int64_t> in_words(int64_t n) {
  std::vector<int64_t> said;
  append(said, n);
  if (said.empty()) said.push_back(first);
  return said;
}

std::vector<int64_t> in_digits(int64_t n) {
  std::vector<int64_t> written = {start};
  for (const char c : std::to_string(n)) written.push_back(first + (c - '0'));
  written.push_back(stop);
  return written;
}

// A data set of one's own: pairs of sentences, made when they are asked for.
struct Numbers {
  std::vector<int64_t> numbers;
  int64_t size() const { return int64_t(numbers.size()); }
  std::tuple<Tensor, Tensor> get(int64_t i) const {
    return {tensor(in_words(numbers[size_t(i)])), tensor(in_digits(numbers[size_t(i)]))};
  }
};

// A batch has one length: shorter sentences are filled up.
std::tuple<Tensor, Tensor> padded(const std::vector<std::tuple<Tensor, Tensor>>& pairs) {
  std::vector<Tensor> said, written;
  for (const auto& [a, b] : pairs) said.push_back(a), written.push_back(b);
  const PadSequenceOptions options{.batch_first = true, .padding_value = filler};
  return {pad_sequence(said, options), pad_sequence(written, options)};
}

struct Translator {
  int64_t width = 64;
  nn::Embedding said{first + std::ssize(words), width}, written{first + 10, width};
  nn::SinusoidalPositions positions{width};
  nn::Transformer transformer{
      width, 4, 2, 2, {.dim_feedforward = 128, .dropout = 0, .batch_first = true, .norm_first = true}};
  nn::Linear out{width, first + 10};

  // Nobody looks at fillers.
  Tensor encode(const Tensor& source) const {
    return transformer.encoder(positions(said(source)), {.src_key_padding_mask = source == filler});
  }
  // For every place of the target what comes next, seen from the places before: hence causal.
  Tensor decode(const Tensor& target, const Tensor& memory, const Tensor& source) const {
    return out(transformer.decoder(positions(written(target)), memory,
                                   {.memory_key_padding_mask = source == filler, .tgt_is_causal = true}));
  }
};

// Teacher forcing: while it learns, the decoder reads the right digits, not its own.
Tensor translation_loss(const Translator& net, const Tensor& source, const Tensor& target) {
  const Tensor logits = net.decode(target.slice(1, 0, -1), net.encode(source), source);
  return cross_entropy(logits.flatten(0, 1), target.slice(1, 1, {}).flatten(), {.ignore_index = filler});
}

// Greedy decoding: the likeliest digit, then the likeliest after it.
Tensor translated(const Translator& net, const Tensor& source, int64_t longest) {
  const NoGrad off;
  const Tensor memory = net.encode(source);
  Tensor target = full({source.size(0), 1}, start);
  while (target.size(1) < longest)
    target = cat({target, net.decode(target, memory, source).select(1, -1).argmax(-1, true)}, 1);
  return target;
}

// As a person would write it: up to the stop.
std::string digits_of(const Tensor& row) {
  std::string text;
  for (const int64_t token : row.to_vector<int64_t>()) {
    if (token == stop) break;
    if (token >= first) text += char('0' + token - first);
  }
  return text;
}

std::string words_of(const Tensor& row) {
  std::string text;
  for (const int64_t token : row.to_vector<int64_t>())
    if (token >= first) text.append(text.empty() ? "" : " ").append(words[token - first]);
  return text;
}

// The share of numbers that are right in every digit; shows some.
double exact_matches(const Translator& net, auto& loader, int64_t shown) {
  int64_t right = 0, all = 0;
  for (auto [source, target] : loader) {
    const Tensor answer = translated(net, source, target.size(1));
    for (int64_t i = 0; i < source.size(0); ++i, ++all) {
      const std::string found = digits_of(answer[i]), wanted = digits_of(target[i]);
      right += found == wanted;
      if (all < shown)
        std::printf("  %s: %s%s\n", words_of(source[i]).c_str(), found.c_str(), found == wanted ? "" : " (wrong)");
    }
  }
  return double(right) / double(all);
}

// Numbers below a million, short ones as often as long ones. Of those from 100 on every seventh is for testing, and never
// learned; the smaller ones are words that have to be.
Numbers drawn(int64_t count, bool test, uint64_t seed) {
  std::mt19937_64 draw(seed);
  Numbers set;
  while (set.size() < count) {
    const auto n = int64_t(draw() % uint64_t(std::pow(10, 1 + draw() % 6)));
    if ((n >= 100 && n % 7 == 0) == test) set.numbers.push_back(n);
  }
  return set;
}

}  // namespace

int main(int count, char** arguments) try {
  int64_t epochs = 6, size = 20000;
  for (int i = 1; i < count; ++i)
    if (std::string(arguments[i]) == "--short") epochs = 1, size = 3000;

  manual_seed(1);
  data::DataLoader loader(drawn(size, false, 1), {.batch_size = 100, .shuffle = true, .seed = 1}, &padded);
  data::DataLoader test(drawn(500, true, 2), {.batch_size = 250}, &padded);
  Translator net;
  optim::AdamW optimizer(parameters(net), {.lr = 2e-3});
  optim::OneCycleLR rate(optimizer, {.max_lr = 2e-3, .total_steps = epochs * loader.size(), .cycle_momentum = false});
  std::printf("%lld parameters\n", static_cast<long long>(num_parameters(net)));

  double before = 0, loss = 0;
  for (int64_t epoch = 1; epoch <= epochs; ++epoch) {
    for (auto [source, target] : loader) {
      optimizer.zero_grad();
      const Tensor error = translation_loss(net, source, target);
      error.backward();
      nn::clip_grad_norm_(parameters(net), 1.0);
      optimizer.step();
      rate.step();
      loss = error.item<double>();
      if (before == 0) before = loss;
    }
    std::printf("epoch %lld  loss %.4f  of numbers never seen %.1f%% are right\n", static_cast<long long>(epoch), loss,
                100 * exact_matches(net, test, 0));
  }
  const double right = exact_matches(net, test, 5);
  std::printf("loss %.2f fell to %.4f; %.1f%% are right in every digit\n", before, loss, 100 * right);
  return loss < 0.8 * before && (epochs == 1 || right > 0.9) ? 0 : 1;
} catch (const Error& e) {
  return std::fprintf(stderr, "translation: %s\n", e.what()), 1;
}
