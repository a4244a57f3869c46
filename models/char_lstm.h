// A character-level language model: embedding, LSTM, and a linear layer onto the vocabulary.
#pragma once
#include <volta/volta.h>

namespace volta::models {

struct CharLSTMConfig {
  int64_t vocab = 65, embedding = 64, hidden = 256, layers = 1;
  double dropout = 0;
};

// models::CharLSTM net{{.vocab = 65}}; net(ids) gives logits [n, t, vocab] of [n, t]. To read on where the last call ended:
// nn::LSTMInput state; net(ids, &state); net(next, &state).
struct CharLSTM {
  CharLSTMConfig config;
  nn::Embedding embedding{config.vocab, config.embedding};
  nn::LSTM lstm{
      config.embedding, config.hidden, {.num_layers = config.layers, .batch_first = true, .dropout = config.dropout}};
  nn::Linear head{config.hidden, config.vocab};

  Tensor operator()(const Tensor& ids, nn::LSTMInput* state = nullptr) const {
    const auto [output, h, c] = lstm(embedding(ids), state ? *state : nn::LSTMInput());
    if (state) *state = {h, c};
    return head(output);
  }
};

}  // namespace volta::models
