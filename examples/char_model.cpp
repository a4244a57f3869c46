// Shows a language model: a small GPT learns the Gettysburg Address letter by letter and recites it; run
// `char_model [--short]`.
#include <models/gpt.h>

#include <cstdio>
#include <string>
#include <string_view>

using namespace volta;

namespace {

// Abraham Lincoln, 19 November 1863; the Bliss copy.
constexpr std::string_view address =
    "Four score and seven years ago our fathers brought forth on this continent, a new nation, conceived in Liberty, "
    "and dedicated to the proposition that all men are created equal.\n"
    "Now we are engaged in a great civil war, testing whether that nation, or any nation so conceived and so "
    "dedicated, "
    "can long endure. We are met on a great battle-field of that war. We have come to dedicate a portion of that "
    "field, "
    "as a final resting place for those who here gave their lives that that nation might live. It is altogether "
    "fitting "
    "and proper that we should do this.\n"
    "But, in a larger sense, we can not dedicate -- we can not consecrate -- we can not hallow -- this ground. The "
    "brave "
    "men, living and dead, who struggled here, have consecrated it, far above our poor power to add or detract. The "
    "world "
    "will little note, nor long remember what we say here, but it can never forget what they did here. It is for us "
    "the "
    "living, rather, to be dedicated here to the unfinished work which they who fought here have thus far so nobly "
    "advanced. It is rather for us to be here dedicated to the great task remaining before us -- that from these "
    "honored "
    "dead we take increased devotion to that cause for which they gave the last full measure of devotion -- that we "
    "here "
    "highly resolve that these dead shall not have died in vain -- that this nation, under God, shall have a new birth "
    "of "
    "freedom -- and that government of the people, by the people, for the people, shall not perish from the earth.\n";

}  // namespace

int main(int count, char** arguments) {
  int steps = 1000;
  double enough = 0.3;  // the loss to reach
  for (int i = 1; i < count; ++i)
    if (std::string_view(arguments[i]) == "--short") steps = 60, enough = 2.5;

  manual_seed(1);
  const data::CharTokenizer tokenizer(address);
  const int64_t context = 64;
  data::DataLoader loader(data::text_blocks(tokenizer.encode(address), context, {.stride = 1}),
                          {.batch_size = 16, .shuffle = true, .seed = 1});
  models::GPT net = models::gpt(
      {.vocab = tokenizer.vocab_size(), .context = context, .width = 64, .heads = 4, .layers = 2, .dropout = 0});
  optim::AdamW optimizer(parameters(net), {.lr = 3e-3});
  optim::WarmupLR rate(optimizer, {.steps = 20}, optim::CosineAnnealingLR(optimizer, {.t_max = steps}));
  std::printf("%zu letters, %lld different ones, %lld parameters\n", address.size(),
              static_cast<long long>(tokenizer.vocab_size()), static_cast<long long>(num_parameters(net)));

  double loss = 0;
  for (int step = 0; step < steps;)
    for (auto [x, y] : loader) {
      optimizer.zero_grad();
      const Tensor error = cross_entropy(net(x).transpose(1, 2), y);  // classes are the second axis
      error.backward();
      nn::clip_grad_norm_(parameters(net), 1.0);
      optimizer.step();
      rate.step();
      loss = error.item<double>();
      if (++step % (steps / 5) == 0) std::printf("step %3d  loss %.3f\n", step, loss);
      if (step == steps) break;
    }

  eval(net);
  const Tensor prompt = tensor(tokenizer.encode("Four score and seven years ago")).unsqueeze(0);
  const Tensor ids = models::generate(net, prompt, {.tokens = 160, .temperature = 0});
  std::printf("\n%s\n\nloss %.3f, %s\n", tokenizer.decode(ids[0].to_vector<int64_t>()).c_str(), loss,
              loss < enough ? "learned" : "not learned");
  return loss < enough ? 0 : 1;
}
