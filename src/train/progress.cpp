// The progress of training, as one updating line on a terminal or plain lines elsewhere.
#include <volta/train/callbacks.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>

#include <sys/ioctl.h>

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
    std::string text = " " + pace(state) + values_of("loss", state.loss());
    for (const auto& [name, value] : state.metrics()) text += values_of(name, value);
    // A line that the terminal breaks would leave a part behind at every update.
    const int64_t room = columns(), rest = shown_width(head(state) + " " + bar(state, 0) + text);
    show(cut(head(state) + " " + bar(state, std::clamp<int64_t>(room - rest - 3, 0, bar_width)) + text, room));
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
  // How many characters stay on one line.
  int64_t columns() const {
    winsize size{};
    const bool known = ioctl(fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? size.ws_col - 1 : std::numeric_limits<int64_t>::max();
  }
  // Characters, without the codes of colours, which end in m.
  template <class Each> static void each_character(const std::string& text, Each each) {
    for (size_t at = 0, end = 0; at < text.size(); at = end) {
      const bool code = text[at] == '\033';
      if (code) end = std::min(text.find('m', at), text.size() - 1) + 1;
      else
        for (end = at + 1; end < text.size() && (uint8_t(text[end]) & 0xC0) == 0x80;) ++end;
      each(text.substr(at, end - at), code);
    }
  }
  static int64_t shown_width(const std::string& text) {
    int64_t width = 0;
    each_character(text, [&](const std::string&, bool code) { width += !code; });
    return width;
  }
  static std::string cut(const std::string& text, int64_t room) {
    std::string out;
    each_character(text, [&](const std::string& one, bool code) {
      if (code || room-- > 0) out += one;
    });
    return out;
  }
  std::string bar(const FitState& state, int64_t width) const {
    if (!state.batches || *state.batches <= 0) return "batch " + std::to_string(state.batch);
    const int64_t done = std::min(state.batch, *state.batches), filled = width * done / *state.batches;
    const std::string whole =
        "[" + painted("32", std::string(size_t(filled), '#')) + std::string(size_t(width - filled), '.') + "] ";
    return (width > 0 ? whole : "") + std::to_string(done) + "/" + std::to_string(*state.batches);
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
