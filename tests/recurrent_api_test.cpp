// Recurrent layers as PyTorch has them: which states go in and come out, and descriptors that do not fit.
#include <gtest/gtest.h>

#include <volta/volta.h>

namespace volta::test {
namespace {

TEST(RecurrentApi, StatesGoInAndComeOut) {
  const Tensor x = randn({5, 2, 3}), h0 = randn({1, 2, 4}), c0 = randn({1, 2, 4});
  const nn::GRU gru(3, 4);
  const nn::RNN rnn(3, 4);
  const nn::LSTM lstm(3, 4);
  const auto [y, h] = gru(x, h0);
  EXPECT_TRUE(equal(y.detach(), gru(x, {.h_0 = h0}).output.detach()));
  EXPECT_TRUE(equal(h.detach(), y.detach().narrow(0, 4, 1)));
  const auto [ry, rh] = rnn(x, {});
  EXPECT_TRUE(equal(ry.detach(), rnn(x, zeros({1, 2, 4})).output.detach()));
  EXPECT_TRUE(equal(rh.detach(), ry.detach().narrow(0, 4, 1)));
  const auto [ly, lh, lc] = lstm(x, {h0, c0});
  EXPECT_TRUE(equal(ly.detach(), lstm(x, {.h_0 = h0, .c_0 = c0}).output.detach()));
  EXPECT_TRUE(equal(lh.detach(), ly.detach().narrow(0, 4, 1)));
  EXPECT_EQ(lc.shape(), (Shape{1, 2, 4}));
  const PackedSequence packed = pack_padded_sequence(x, {5, 3});
  const auto [py, ph] = gru(packed, h0);
  EXPECT_TRUE(equal(ph.detach(), gru(x, {.h_0 = h0, .lengths = {5, 3}}).h_n.detach()));
  const auto [qy, qh, qc] = lstm(packed, {h0, c0});
  EXPECT_TRUE(equal(qc.detach(), lstm(x, {h0, c0, {5, 3}}).c_n.detach()));
  EXPECT_EQ(py.lengths(), (std::vector<int64_t>{5, 3}));
  EXPECT_EQ(qy.lengths(), (std::vector<int64_t>{5, 3}));
  EXPECT_EQ(qh.shape(), ph.shape());
}

TEST(RecurrentApi, RefusesWhatDoesNotFit) {
  const nn::GRU gru(3, 4);
  const nn::LSTM lstm(3, 4);
  const Tensor x = randn({5, 2, 3}), h = zeros({1, 2, 4});
  EXPECT_THROW(lstm(x, {.lengths = {5, 0}}), Error);
  EXPECT_THROW(gru(x, {.lengths = {-1, 2}}), Error);
  EXPECT_THROW(gru.run(x, {.c_0 = h}), Error);
  EXPECT_THROW(gru(pack_padded_sequence(x, {5, 3}), {.lengths = {5, 3}}), Error);
  EXPECT_THROW(gru(PackedSequence{zeros({3, 3}), {2, 1}, {5, 1}}), Error);
}

// The same rows, one of the parts wrong.
TEST(RecurrentApi, PackedSequencesAreChecked) {
  const Tensor rows = randn({3, 2});
  const PackedSequence fine{rows, {2, 1}, {1, 0}};
  EXPECT_EQ(fine.lengths(), (std::vector<int64_t>{1, 2}));
  EXPECT_TRUE(equal(pad_packed_sequence(fine).data[{1, 1}], rows[2]));
  const PackedSequence wrong[] = {
      {rows, {2, 1}, {5, 1}},         // beyond the batch
      {rows, {2, 1}, {-1, 1}},        // before it
      {rows, {2, 1}, {1, 1}},         // one twice
      {rows, {2, 1}, {0}},            // fewer sequences than rows of the first step
      {rows, {2, 1}, {2, 0, 1}},      // more
      {rows, {1, 2}, {0}},            // growing
      {rows, {2, 2}, {0, 1}},         // too few rows
      {rows, {2}, {0, 1}},            // too many
      {rows, {3, -1, 1}, {0, 1, 2}},  // adds up, but goes below nothing
      {rows, {2, 0, 1}, {0, 1}},      // a step without sequences
      {rows, {}, {}},                 // no steps for rows
      {rows, {}, {0}},                // nor for sequences
      {zeros({}), {1}, {0}},          // no axis of rows
      {Tensor(), {1}, {0}},           // no rows
      {rows, {int64_t(1) << 62, int64_t(1) << 62}, {0, 1}},
  };
  const PackedSequence whole{tensor({1, 2, 3}), {2, 1}, {1, 0}};
  EXPECT_THROW(pad_packed_sequence(whole, false, 0.5), Error);  // integers have no halves
  EXPECT_THROW(pad_sequence({whole.data}, {.padding_value = 0.5}), Error);
  for (const PackedSequence& p : wrong) {
    EXPECT_THROW(pad_packed_sequence(p), Error);
    EXPECT_THROW(p.lengths(), Error);
  }
}

TEST(RecurrentApi, CellsCheckTheirInput) {
  const nn::GRUCell gru(3, 4);
  const nn::LSTMCell lstm(3, 4);
  const nn::RNNCell rnn(3, 4);
  for (const Shape& shape : {Shape{2, 4}, Shape{4}, Shape{1, 2, 3}, Shape{}, Shape{3, 2}}) {
    EXPECT_THROW(gru(zeros(shape)), Error) << shape.str();
    EXPECT_THROW(rnn(zeros(shape)), Error) << shape.str();
    EXPECT_THROW(lstm(zeros(shape)), Error) << shape.str();
  }
  EXPECT_EQ(gru(zeros({3})).shape(), (Shape{4}));
  EXPECT_EQ(rnn(zeros({2, 3})).shape(), (Shape{2, 4}));
  EXPECT_EQ(lstm(zeros({3})).c.shape(), (Shape{4}));
}

// What a layer computes, from its parameters in a row; under Autocast too.
TEST(RecurrentFunctions, GiveTheBitsOfLayers) {
  const Tensor x = randn({5, 2, 3}), batch_first = x.transpose(0, 1).contiguous();
  for (const DType dtype : {f32, f64, bf16}) {
    nn::LSTM lstm(3, 4, {.num_layers = 2, .batch_first = true, .dropout = 0.5, .bidirectional = true, .proj_size = 2});
    to(lstm, dtype);
    manual_seed(7);
    const auto [y, h, c] = lstm(batch_first.to(dtype), {.lengths = {5, 3}});
    manual_seed(7);
    const auto f = volta::lstm(batch_first.to(dtype), {}, parameters(lstm),
                               {.num_layers = 2,
                                .dropout = 0.5,
                                .train = true,
                                .bidirectional = true,
                                .batch_first = true,
                                .lengths = {5, 3}});
    EXPECT_TRUE(equal(f.output.detach(), y.detach()) && equal(f.h_n.detach(), h.detach()));
    EXPECT_TRUE(equal(f.c_n.detach(), c.detach()));
    EXPECT_EQ(f.output[1].narrow(0, 3, 2).abs().sum().item<double>(), 0);
    nn::GRUCell cell(3, 4);
    to(cell, dtype);
    EXPECT_TRUE(equal(gru_cell(x[0].to(dtype), {}, cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh).detach(),
                      cell(x[0].to(dtype)).detach()));
  }
  const nn::RNN rnn(3, 4, {.bias = false, .nonlinearity = "relu"});
  const Autocast guard(bf16);
  const auto [y, h] = rnn_relu(x, {}, parameters(rnn), {.has_biases = false});
  EXPECT_EQ(y.dtype(), bf16);
  EXPECT_TRUE(equal(y.detach(), rnn(x, {}).output.detach()));
}

TEST(RecurrentFunctions, NameWhatDoesNotFit) {
  const auto fails = [](Error::Kind kind, const char* op, const std::string& part, auto f) {
    const auto result = attempt([&] { return Tensor(f()); });
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind(), kind) << result.error().what();
    EXPECT_EQ(result.error().op(), op) << result.error().what();
    EXPECT_NE(std::string(result.error().what()).find(part), std::string::npos) << result.error().what();
  };
  using enum Error::Kind;
  const Tensor x = randn({5, 2, 3}), w_ih = randn({16, 3}), w_hh = randn({16, 4}), b = randn({16}),
               h = zeros({1, 2, 4});
  const auto of = [&](const std::vector<Tensor>& params, const RecurrenceOptions& o = {}) {
    return [=] { return lstm(x, {h, h}, params, o).output; };
  };
  fails(argument, "lstm", "2 params for 1 layers", of({w_ih, w_hh}));
  fails(argument, "lstm", "num_layers", of({w_ih, w_hh, b, b}, {.num_layers = int64_t(1) << 62}));
  fails(argument, "lstm", "num_layers", of({}, {.num_layers = 0}));
  fails(argument, "lstm", "dropout", of({w_ih, w_hh, b, b}, {.dropout = 2}));
  fails(argument, "lstm", "length 6", of({w_ih, w_hh, b, b}, {.lengths = {6, 1}}));
  fails(argument, "lstm", "undefined", of({w_ih, w_hh, b, Tensor()}));
  fails(argument, "lstm", "got 1", [=] { return lstm(x, {h}, {w_ih, w_hh, b, b}).output; });
  fails(shape, "lstm", "w_ih has shape [15, 3]", of({w_ih.narrow(0, 0, 15), w_hh, b, b}));
  fails(shape, "lstm", "w_hh has shape [16, 3], not [16, 4]", of({w_ih, w_ih, b, b}));
  fails(shape, "lstm", "b_hh has shape [4], not [16]", of({w_ih, w_hh, b, b.narrow(0, 0, 4)}));
  fails(shape, "lstm", "w_hr has shape [2, 3], not [2, 4]", of({w_ih, w_ih.narrow(1, 0, 2), b, b, zeros({2, 3})}));
  fails(shape, "lstm", "w_ih has shape [16, 3], not [16, 4]",
        of({w_ih, w_hh, b, b, w_ih, w_hh, b, b}, {.num_layers = 2}));
  fails(dtype, "lstm", "b_ih f64", of({w_ih, w_hh, b.to(f64), b}));
  fails(dtype, "gru", "gru", [=] { return gru(x.to(i64), {}, {w_ih, w_hh, b, b}).output; });
  fails(shape, "gru_cell", "w_ih has shape [16, 3]", [=] { return gru_cell(x[0], {}, w_ih, w_hh); });
  fails(shape, "rnn_tanh_cell", "w_hh has shape [16, 4], not [16, 16]",
        [=] { return rnn_tanh_cell(x[0], {}, w_ih, w_hh); });
  fails(shape, "lstm_cell", "c has shape [1, 2, 4]", [=] { return lstm_cell(x[0], {h[0], h}, w_ih, w_hh).h; });
}

// A layer whose weights were replaced says which does not fit.
TEST(RecurrentApi, WeightsAreChecked) {
  nn::GRU gru(3, 4);
  gru.weights[0].hh = randn({12, 5});
  const auto y = attempt([&] { return gru(randn({5, 2, 3}), {}).output; });
  ASSERT_FALSE(y);
  EXPECT_TRUE(std::string(y.error().what()).starts_with("GRU: w_hh has shape [12, 5], not [12, 4]"))
      << y.error().what();
}

// Sizes that a stride leaves open, beside padding and dilation: those of the input from which the other direction leads here.
TEST(NnConvTranspose, OutputSizeAccountsForPaddingAndDilation) {
  for (const int64_t padding : {0, 1, 2})
    for (const int64_t dilation : {1, 2})
      for (const int64_t size : {9, 10, 11}) {
        const nn::Conv1d down(2, 3, 4, {.stride = 3, .padding = padding, .dilation = dilation});
        const nn::ConvTranspose1d up(3, 2, 4, {.stride = 3, .padding = padding, .dilation = dilation});
        const Tensor x = randn({1, 2, size}), y = down(x), z = up(y, {size});
        EXPECT_EQ(z.shape(), x.shape());
        const Tensor least = up(y);
        EXPECT_TRUE(allclose(z.narrow(2, 0, least.size(2)), least));
        EXPECT_THROW(up(y, {least.size(2) - 1}), Error);
        EXPECT_THROW(up(y, {least.size(2) + 3}), Error);
      }
}

}  // namespace
}  // namespace volta::test
