// SummaryWriter: event files that TensorBoard shows.
//
//   SummaryWriter writer("runs/first");
//   writer.add_scalar("loss/train", loss.item<double>(), step);
//   tensorboard --logdir runs
#pragma once
#include <memory>
#include <string>

#include <volta/nn/dict.h>
#include <volta/tensor.h>

namespace volta {

struct SummaryWriterOptions {
  std::string suffix = {};    // of the file's name
  double flush_seconds = 10;  // at most so long until others see what was added
};

// One new file in the folder, which is made if need be. Threads may share a writer. What cannot be written is an Error of
// kind io; the destructor, which cannot throw, writes the rest without a word: call flush() to be sure.
class SummaryWriter {
 public:
  explicit SummaryWriter(const std::string& folder, const SummaryWriterOptions& options = {});
  ~SummaryWriter();
  SummaryWriter(const SummaryWriter&) = delete;
  SummaryWriter& operator=(const SummaryWriter&) = delete;

  void add_scalar(const std::string& tag, double value, int64_t step);
  void add_scalars(const std::string& tag, const Dict<double>& values, int64_t step);  // as tag/name each
  // Counts by TensorBoard's buckets, each 1.1 times as wide as the one before; NaN and infinities are left out.
  void add_histogram(const std::string& tag, const Tensor& values, int64_t step);
  // [H, W] or [C, H, W] with 1 (grey), 3 (RGB) or 4 (RGBA) channels; u8, or floating from 0 to 1.
  void add_image(const std::string& tag, const Tensor& image, int64_t step);
  void add_text(const std::string& tag, const std::string& text, int64_t step);         // Markdown
  void add_graph_text(const std::string& tag, const Tensor& result, int64_t step = 0);  // what graph_text(result) says
  void flush();
  std::string path() const;  // of the file

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace volta
