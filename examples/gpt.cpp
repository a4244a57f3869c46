// Shows a transformer as language model: a small GPT learns a novel letter by letter, then writes on; run
// `gpt [FILE] [--short]`. Blocks of a text, fit with a loss of one's own, decay for matrices alone, decoding with a cache.
#include <models/gpt.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

using namespace volta;

namespace {

Tensor next_token_loss(const Tensor& logits, const Tensor& next) {
  return cross_entropy(logits.flatten(0, 1), next.flatten());
}

// What is to be beaten: the loss of a table that says how often each letter follows each.
double loss_of_pairs(const Tensor& training, const Tensor& held_out, int64_t vocab) {
  const auto pairs = [vocab](const Tensor& t) { return t.slice(0, 0, -1) * vocab + t.slice(0, 1, {}); };
  const Tensor counts = bincount(pairs(training), {}, vocab * vocab).view({vocab, vocab}).to(f64) + 0.1;
  const Tensor shares = counts / counts.sum(1, true);
  return -log(shares).flatten().index_select(0, pairs(held_out)).mean().item<double>();
}

// Matrices are pulled towards zero; biases and the factors of layer norms are not.
std::vector<optim::Group> groups(const models::GPT& net) {
  optim::Group matrices, others{.weight_decay = 0};
  for (const Tensor& p : parameters(net)) (p.dim() > 1 ? matrices : others).params.push_back(p);
  return {matrices, others};
}

double seconds(auto&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int count, char** arguments) try {
  std::string file = "data/austen/pride-and-prejudice.txt";
  bool brief = false;
  for (int i = 1; i < count; ++i)
    if (std::string(arguments[i]) == "--short") brief = true;
    else file = arguments[i];

  manual_seed(1);
  const std::string text = data::read_text(file);
  const data::CharTokenizer tokenizer(text);
  const Tensor tokens = tensor(tokenizer.encode(text));
  const int64_t vocab = tokenizer.vocab_size(), context = 64, epochs = brief ? 1 : 5;
  // The end of the book is for testing.
  const int64_t cut = brief ? 150000 : tokens.size(0) * 9 / 10, end = brief ? 160000 : tokens.size(0);
  const Tensor training = tokens.slice(0, 0, cut), held_out = tokens.slice(0, cut, end);
  data::DataLoader loader(data::text_blocks(training, context), {.batch_size = 32, .shuffle = true, .seed = 1});
  data::DataLoader test(data::text_blocks(held_out, context), {.batch_size = 64});

  models::GPT net = models::gpt({.vocab = vocab,
                                 .context = context,
                                 .width = brief ? 32 : 128,
                                 .heads = 4,
                                 .layers = brief ? 1 : 4,
                                 .dropout = brief ? 0.0 : 0.05});
  optim::AdamW optimizer(groups(net), {.lr = 3e-3, .weight_decay = 0.1});
  optim::OneCycleLR rate(optimizer, {.max_lr = 3e-3, .total_steps = epochs * loader.size(), .cycle_momentum = false});
  std::printf("%lld letters, %lld different ones, %lld parameters\n", static_cast<long long>(tokens.size(0)),
              static_cast<long long>(vocab), static_cast<long long>(num_parameters(net)));
  const History history = fit(net, loader, optimizer,
                              {.epochs = epochs,
                               .loss = next_token_loss,
                               .validation = test,
                               .callbacks = {callbacks::progress()},
                               .scheduler = rate,
                               .schedule_every = "step",
                               .max_grad_norm = 1.0});

  eval(net);
  const Tensor prompt = tensor(tokenizer.encode("It is a truth universally acknowledged, that ")).unsqueeze(0);
  const Tensor ids = models::generate(net, prompt, {.tokens = brief ? 60 : 500, .temperature = 0.7, .top_k = 20});
  std::printf("\n%s\n\n", tokenizer.decode(ids[0].to_vector<int64_t>()).c_str());

  // The cache holds keys and values of the letters so far, so that each step computes the last one alone.
  Tensor with, without;
  const Tensor start = prompt.slice(1, 0, 4);
  const double fast = seconds([&] { with = models::generate(net, start, {.tokens = 60, .temperature = 0}); });
  const double slow =
      seconds([&] { without = models::generate(net, start, {.tokens = 60, .temperature = 0, .use_cache = false}); });
  const bool same = equal(with, without);
  std::printf("60 letters in %.0f ms with the cache, %.0f without, %s\n", 1e3 * fast, 1e3 * slow,
              same ? "the same" : "OTHER ones");

  const double loss = history.values("val_loss").back(), pairs = loss_of_pairs(training, held_out, vocab);
  std::printf("loss %.3f on text held out; of a table of pairs %.3f, of a guess %.3f\n", loss, pairs,
              std::log(double(vocab)));
  return same && loss < (brief ? 3.3 : pairs - 0.6) ? 0 : 1;
} catch (const Error& e) {
  return std::fprintf(stderr, "gpt: %s\n", e.what()), 1;
}
