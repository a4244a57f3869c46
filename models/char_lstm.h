// A character-level language model: embedding, LSTM, and a linear layer onto the vocabulary.
#pragma once
#include <volta/volta.h>

namespace volta::models {

struct CharLSTMConfig {
  int64_t vocab = 65, embedding = 64, hidden = 256, layers = 1;
  double dropout = 0;
};

// models::CharLSTM net{{.vocab = 65}}; net(ids) gives logits [n, t, vocab] of [n, t].
struct CharLSTM {
  CharLSTMConfig config;
  nn::Embedding embedding{config.vocab, config.embedding};
  nn::LSTM lstm{
      config.embedding, config.hidden, {.num_layers = config.layers, .batch_first = true, .dropout = config.dropout}};
  nn::Linear head{config.hidden, config.vocab};

  Tensor operator()(const Tensor& ids) const { return head(lstm(embedding(ids)).output); }
};

}  // namespace volta::models
