// The progress of training, as one updating line on a terminal or plain lines elsewhere.
#include <volta/train/callbacks.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "core/check.h"
#include "train/text.h"

namespace volta::callbacks {
namespace {

class Progress final : public Callback {
 public:
  explicit Progress(const ProgressOptions& options)
      : out_(options.out ? options.out : stdout), interval_(options.interval) {
    require(interval_ >= 0, ErrorKind::argument, "progress", "interval is not negative");
    const char* kind = std::getenv("TERM");
    const bool dumb = kind && std::string(kind) == "dumb";  // it obeys no codes, nor that which clears a line
    terminal_ = options.terminal ? *options.terminal : !dumb && isatty(fileno(out_)) == 1;
    const char* refused = std::getenv("NO_COLOR");
    colour_ = terminal_ && !(refused && *refused);
  }

  void epoch_begin(FitState&) override { start_ = shown_ = Clock::now(); }

  void step_end(FitState& state) override {
    if (!terminal_ || seconds_since(shown_) < interval_) return;
    shown_ = Clock::now();
    std::string text = head(state) + " " + bar(state) + " " + pace(state) + values_of("loss", state.loss());
    for (const auto& [name, value] : state.metrics()) text += values_of(name, value);
    show(text);
    open_ = true;
  }

  void epoch_end(FitState& state) override {
    const EpochRecord& record = state.history.epochs.back();
    std::string text = head(state);
    for (const auto& [name, value] : record.values)
      if (name != "seconds") text += values_of(name, value);
    if (record.skipped > 0) text += "  skipped " + std::to_string(record.skipped);
    text += "  " + seconds_text(record.values.at("seconds"));
    show(text);
    open_ = true;
    close();
  }

  void end(FitState& state) override {
    close();
    if (state.history.interrupted) put("interrupted after step " + std::to_string(state.step) + "\n");
    std::fflush(out_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int64_t bar_width = 24;

  static double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

  std::string painted(const char* code, const std::string& text) const {
    return colour_ ? "\033[" + std::string(code) + "m" + text + "\033[0m" : text;
  }
  std::string head(const FitState& state) const {
    return painted("1", "epoch " + std::to_string(state.epoch + 1) + "/" + std::to_string(state.epochs));
  }
  std::string values_of(const std::string& name, double value) const {
    return "  " + painted("2", name) + " " + short_text(value);
  }
  std::string bar(const FitState& state) const {
    if (!state.batches || *state.batches <= 0) return "batch " + std::to_string(state.batch);
    const int64_t done = std::min(state.batch, *state.batches), filled = bar_width * done / *state.batches;
    return "[" + painted("32", std::string(size_t(filled), '#')) + std::string(size_t(bar_width - filled), '.') + "] " +
           std::to_string(done) + "/" + std::to_string(*state.batches);
  }
  std::string pace(const FitState& state) const {
    const double seconds = std::max(seconds_since(start_), 1e-9), rate = double(state.batch) / seconds;
    std::string text = short_rate(rate) + "/s";
    if (state.batches && *state.batches > state.batch)
      text += " eta " + seconds_text(double(*state.batches - state.batch) / rate);
    return text;
  }
  static std::string short_rate(double rate) {
    return rate >= 100 ? std::to_string(std::lround(rate)) : short_text(rate).substr(0, 5);
  }

  void show(const std::string& text) const { put(terminal_ ? "\r\033[K" + text : text + "\n"); }
  void close() {
    if (terminal_ && open_) put("\n");
    open_ = false;
  }
  // A closed pipe or a full disk does not end the training.
  void put(const std::string& text) const {
    std::fwrite(text.data(), 1, text.size(), out_);
    std::fflush(out_);
  }

  std::FILE* out_;
  double interval_;
  bool terminal_ = false, colour_ = false, open_ = false;
  Clock::time_point start_, shown_;
};

}  // namespace

CallbackPtr progress(const ProgressOptions& options) { return std::make_shared<Progress>(options); }

}  // namespace volta::callbacks
