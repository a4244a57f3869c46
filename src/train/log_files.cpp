// Callbacks that write files: CSV, JSON lines and learning rates.
#include <volta/train/callbacks.h>

#include "core/check.h"
#include "train/output_file.h"
#include "train/text.h"

namespace volta::callbacks {
namespace {

class Csv final : public Callback {
 public:
  Csv(const std::string& path, const FileOptions& options) : file_(path, options.append, "csv") {}

  void epoch_end(FitState& state) override {
    const EpochRecord& record = state.history.epochs.back();
    if (columns_.empty()) {
      columns_ = record.values.names();
      file_.begin_with(head());
    }
    std::string row = std::to_string(record.epoch) + "," + std::to_string(record.step);
    for (const std::string& name : columns_)
      row += "," + (record.values.contains(name) ? number_text(record.values.at(name)) : "");
    file_.write(row + "\n");
    file_.flush();
  }

 private:
  std::string head() const {
    std::string head = "epoch,step";
    for (const std::string& name : columns_) head += "," + csv_field(name);
    return head;
  }
  OutputFile file_;
  std::vector<std::string> columns_;
};

class JsonLines final : public Callback {
 public:
  JsonLines(const std::string& path, const FileOptions& options) : file_(path, options.append, "json_lines") {}

  void epoch_end(FitState& state) override {
    const EpochRecord& record = state.history.epochs.back();
    std::string line = "{\"epoch\": " + std::to_string(record.epoch) + ", \"step\": " + std::to_string(record.step);
    for (const auto& [name, value] : record.values) line += ", " + json_string(name) + ": " + json_number(value);
    file_.write(line + "}\n");
    file_.flush();
  }

 private:
  OutputFile file_;
};

class LRLogger final : public Callback {
 public:
  LRLogger(const std::string& path, const LRLoggerOptions& options)
      : file_(path, options.append, "lr_logger"), every_(options.every) {
    require(every_ >= 1, ErrorKind::argument, "lr_logger", "every is at least 1, got ", every_);
  }

  // The rates that the next step will use; the first row is written before any.
  void begin(FitState& state) override {
    std::string head = "step";
    for (size_t i = 0; i < state.optimizer.param_groups().size(); ++i) head += ",lr" + std::to_string(i);
    file_.begin_with(head);
    row(state);
  }
  void step_end(FitState& state) override {
    if (state.step % every_ == 0) row(state);
  }
  void epoch_end(FitState&) override { file_.flush(); }
  void end(FitState&) override { file_.flush(); }

 private:
  void row(const FitState& state) {
    std::string text = std::to_string(state.step);
    for (const optim::ParamGroup& g : state.optimizer.param_groups()) text += "," + number_text(g.lr);
    file_.write(text + "\n");
  }
  OutputFile file_;
  int64_t every_;
};

}  // namespace

CallbackPtr csv(const std::string& path, const FileOptions& options) { return std::make_shared<Csv>(path, options); }
CallbackPtr json_lines(const std::string& path, const FileOptions& options) {
  return std::make_shared<JsonLines>(path, options);
}
CallbackPtr lr_logger(const std::string& path, const LRLoggerOptions& options) {
  return std::make_shared<LRLogger>(path, options);
}

}  // namespace volta::callbacks
