// Source: where a fuzzed call gets its arguments from, a seed or bytes. What it drew is noted, so that a call can be told.
#pragma once
#include <deque>
#include <span>
#include <string>
#include <vector>

#include <volta/volta.h>

namespace volta::fuzz {

class Source {
 public:
  Source(uint64_t seed, uint64_t call) : state_(seed * 0x9e3779b97f4a7c15 + call * 0xbf58476d1ce4e5b9 + 1) {}
  explicit Source(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  uint64_t bits();
  int64_t within(int64_t low, int64_t high) { return low + int64_t(bits() % uint64_t(high - low + 1)); }
  bool chance(int percent) { return within(1, 100) <= percent; }
  template <class T> const T& one_of(const std::vector<T>& list) {
    return list[size_t(within(0, int64_t(list.size()) - 1))];
  }

  int64_t size();                  // most are small, some 0, negative, or near 2^31, 2^45, 2^62, 2^63
  int64_t few(int64_t least = 1);  // a size that makes sense, but for one in twenty
  int64_t axis();
  double number();       // most are ordinary, some NaN, infinite, denormal, huge, negative
  double probability();  // most are within [0, 1]
  DType dtype();         // most are that of the call
  Shape shape();         // of a tensor: few elements
  Shape sizes();         // as an argument: anything
  PerAxis per_axis(int axes, int64_t least = 1);
  std::vector<int64_t> list();

  // Tensors of any layout (expanded, transposed, sliced, reversed) and any numbers; floating ones may require grad.
  Tensor tensor();  // related to those drawn before
  Tensor tensor(const Shape& shape) { return tensor(shape, dtype()); }
  Tensor tensor(const Shape& shape, DType dtype);
  Tensor floats(const Shape& shape) { return tensor(shape, chance(95) ? floating_ : dtype()); }
  Tensor indices(const Shape& shape, int64_t below);  // most lie in [0, below)
  Tensor maybe(const Tensor& x) { return chance(70) ? x : Tensor(); }
  std::vector<Tensor> tensors();

  template <class E> Choice<E> choice() {
    constexpr auto names = choice_names(E{});
    if (chance(3)) return Choice<E>("unknown");
    const auto value = E(within(0, int64_t(names.size()) - 1));
    note(std::string(names[size_t(value)]));
    return value;
  }

  const Tensor& keep(Tensor x) { return kept_.emplace_back(std::move(x)); }  // for operands, which borrow
  const std::vector<Tensor>& leaves() const { return leaves_; }
  void note(const std::string& text);
  const std::string& story() const { return story_; }
  void tell(char* place, size_t room) { place_ = place, room_ = room; }  // notes are written there as they are made

 private:
  Tensor laid_out(const Shape& shape, DType dtype);
  Tensor filled(const Shape& shape, DType dtype);

  uint64_t state_ = 0;
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  DType floating_ = f32;
  std::vector<Shape> shapes_;
  std::deque<Tensor> kept_;
  std::vector<Tensor> leaves_;
  std::string story_;
  char* place_ = nullptr;
  size_t room_ = 0;
  bool begun_ = false;
};

struct Call {
  std::string name;
  std::function<std::vector<Tensor>(Source&)> run;
};
void add_ops(std::vector<Call>& calls);      // every op of the generated list
void add_layers(std::vector<Call>& calls);   // functions and layers of networks
void add_modules(std::vector<Call>& calls);  // the remaining layers
void add_losses(std::vector<Call>& calls);   // losses, optimizers, schedulers, sequences

const std::vector<Call>& all_calls();
// Runs a call, and the backward pass of what it gives. Empty, or what else than a result or an Error came of it.
std::string run(const Call& call, Source& source, bool* gave_result = nullptr);

}  // namespace volta::fuzz
