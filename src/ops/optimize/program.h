// Program: the calls that a function of tensors made of the CPU, once, to be made again for other inputs. What did not depend on
// the inputs is done; the rest is rewritten into fewer calls, whose memory is laid out beforehand.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/impl.h"
#include "ops/optimize/calls.h"

namespace volta::program {

using Function = std::function<std::vector<Tensor>(std::span<const Tensor>)>;

// What a run of the function touched. Addresses in the calls are those of that run, and tell the memory meant.
struct Trace {
  enum class Kind : uint8_t { constant, input, made };
  struct Memory {
    Kind kind;
    IntrusivePtr<Storage> storage;
    int input = 0;         // which, of an input
    bool known = true;     // the same at every run, so far
    bool touched = false;  // it may hold numbers from before the first call that depends on an input
    bool kept = false;     // the program holds it
  };
  // The memory that an address lies in, or null.
  Memory* find(const void* address);
  Memory& at(const Arg& a) { return *find(a.data); }
  Memory& add(Kind kind, IntrusivePtr<Storage> storage);
  // Keeps a constant's memory, and gives its place.
  Arg keep(const Tensor& x);
  const Layout* keep(const Layout& layout) { return &layouts.emplace_back(layout); }

  // A tensor from before the run, and its memory then.
  struct Source {
    Tensor tensor;
    IntrusivePtr<Storage> storage;
    uint32_t version;
  };

  std::vector<Call> calls;
  std::vector<Tensor> outputs;
  std::map<const TensorImpl*, Source> sources;
  std::map<const char*, Memory> memories;  // by where they begin
  std::deque<Layout> layouts;              // of the calls' operands
  std::deque<std::vector<int64_t>> places;
  std::deque<std::vector<double>> factors;
};

// Runs the function of these tensors, which nobody else holds.
Trace record(std::vector<Tensor> inputs, const Function& f);
bool is_recording();  // on this thread
// Folds batch norm into the convolutions before it, and what follows a product into it.
void rewrite(Trace& trace);

class Program {
 public:
  Program(std::span<const Tensor> inputs, const Function& f);
  std::vector<Tensor> operator()(std::span<const Tensor> inputs) const;
  // Whether what was there before is as it was.
  bool current() const;
  int64_t working_bytes() const { return bytes_; }
  size_t calls() const { return calls_.size(); }

 private:
  // An operand that lies elsewhere at every run: in working memory, in an input, in a result.
  struct Place {
    size_t call;
    int operand;
    int base;        // 0: working memory, then the inputs, then the results' memory
    int64_t offset;  // in bytes
  };
  struct Output {
    int base = -1;  // a constant, which is copied
    Tensor like;    // the constant, or nothing
    Layout place;
    DType dtype = f32;
  };
  // One run's own calls and working memory.
  struct Frame {
    std::vector<Call> calls;
    IntrusivePtr<Storage> memory;
    std::vector<std::pair<Arg*, const Place*>> moving;
  };
  class Borrowed;
  std::unique_ptr<Frame> make_frame() const;
  void lay_out(Trace& trace);

  std::vector<Call> calls_;
  std::deque<Layout> layouts_;
  std::deque<std::vector<int64_t>> tables_;
  std::deque<std::vector<double>> factors_;
  std::vector<Trace::Source> sources_;
  std::vector<IntrusivePtr<Storage>> constants_;  // which the calls read
  std::vector<Place> places_;
  std::vector<Output> outputs_;
  std::vector<int64_t> result_bytes_;
  size_t inputs_;
  int64_t bytes_ = 0;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Frame>> idle_;  // with room for every frame that was made
  mutable size_t frames_ = 0;
};

}  // namespace volta::program
