// Shows a recurrent language model: an LSTM reads a novel letter by letter, then writes on; run
// `char_model [FILE] [--short]`. How long texts are learned in blocks, with states that go from block to block.
#include <models/char_lstm.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

using namespace volta;

namespace {

constexpr int64_t rows = 32, block = 64;

// A text as streams side by side: each row goes on in the next block where it stopped in this one.
Tensor streams(const Tensor& tokens) {
  const int64_t columns = tokens.size(0) / rows;
  return tokens.slice(0, 0, rows * columns).view({rows, columns});
}

// The loss of predicting every letter of a block from those before it.
Tensor block_loss(const models::CharLSTM& net, const Tensor& text, int64_t begin, nn::LSTMInput& state) {
  const Tensor x = text.slice(1, begin, begin + block), y = text.slice(1, begin + 1, begin + block + 1);
  return cross_entropy(net(x, &state).flatten(0, 1), y.flatten());
}

double held_out_loss(const models::CharLSTM& net, const Tensor& text) {
  const NoGrad off;
  nn::LSTMInput state;
  double total = 0;
  int64_t blocks = 0;
  for (int64_t begin = 0; begin + block < text.size(1); begin += block, ++blocks)
    total += block_loss(net, text, begin, state).item<double>();
  return total / double(blocks);
}

// Each letter is drawn from what the net thinks of those before; the state remembers them.
std::string continued(const models::CharLSTM& net, const data::CharTokenizer& tokenizer, const std::string& beginning,
                      int letters) {
  const NoGrad off;
  nn::LSTMInput state;
  std::vector<int64_t> ids = tokenizer.encode(beginning);
  Tensor next = tensor(ids).unsqueeze(0);
  for (int i = 0; i < letters; ++i) {
    const Tensor logits = net(next, &state).select(1, -1);
    next = multinomial(softmax(logits / 0.6, -1), 1);
    ids.push_back(next.item<int64_t>());
  }
  return tokenizer.decode(ids);
}

}  // namespace

int main(int count, char** arguments) try {
  std::string file = "data/austen/pride-and-prejudice.txt";
  int steps = 2000;
  double enough = 1.4;  // the loss to reach
  int64_t hidden = 256;
  for (int i = 1; i < count; ++i)
    if (std::string(arguments[i]) == "--short") steps = 40, enough = 3, hidden = 64;
    else file = arguments[i];

  manual_seed(1);
  const std::string text = data::read_text(file);
  const data::CharTokenizer tokenizer(text);
  const Tensor tokens = tensor(tokenizer.encode(text));
  const int64_t cut = tokens.size(0) * 9 / 10;
  const Tensor training = streams(tokens.slice(0, 0, cut)), held_out = streams(tokens.slice(0, cut, {}));
  models::CharLSTM net{{.vocab = tokenizer.vocab_size(), .embedding = 32, .hidden = hidden}};
  optim::AdamW optimizer(parameters(net), {.lr = 4e-3});
  optim::CosineAnnealingLR rate(optimizer, {.t_max = steps});
  std::printf("%lld letters, %lld different ones, %lld parameters\n", static_cast<long long>(tokens.size(0)),
              static_cast<long long>(tokenizer.vocab_size()), static_cast<long long>(num_parameters(net)));

  nn::LSTMInput state;
  int64_t begin = 0;
  for (int step = 1; step <= steps; ++step) {
    if (begin + block >= training.size(1)) begin = 0, state = {};
    optimizer.zero_grad();
    const Tensor loss = block_loss(net, training, begin, state);
    loss.backward();
    nn::clip_grad_norm_(parameters(net), 1.0);
    optimizer.step();
    rate.step();
    // The next block takes the states as numbers: gradients end here, or each step would run back to the first.
    state = {state.h_0.detach(), state.c_0.detach()};
    begin += block;
    if (step % (steps / 5) == 0)
      std::printf("step %4d  loss %.3f  held out %.3f\n", step, loss.item<double>(), held_out_loss(net, held_out));
  }

  const double loss = held_out_loss(net, held_out);
  std::printf("\n%s\n\n", continued(net, tokenizer, "\"My dear Mr. Bennet,\" said ", steps > 100 ? 400 : 60).c_str());
  std::printf("loss %.3f on text held out: as unsure as among %.1f letters of %lld\n", loss, std::exp(loss),
              static_cast<long long>(tokenizer.vocab_size()));
  return loss < enough ? 0 : 1;
} catch (const Error& e) {
  return std::fprintf(stderr, "char_model: %s\n", e.what()), 1;
}
