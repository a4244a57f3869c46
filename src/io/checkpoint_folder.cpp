// CheckpointFolder: a file for each step, of which the newest and the best stay.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "io/checkpoint.h"

namespace volta {
namespace {

namespace fs = std::filesystem;
const char* const op = "CheckpointFolder";
constexpr std::string_view prefix = "step_", suffix = ".ckpt";

std::string file_name(int64_t step) {
  const std::string digits = std::to_string(step);
  return std::string(prefix) + std::string(12 - std::min<size_t>(12, digits.size()), '0') + digits +
         std::string(suffix);
}

}  // namespace

CheckpointFolder::CheckpointFolder(std::string folder, const CheckpointFolderOptions& options)
    : folder_(std::move(folder)),
      keep_last_(options.keep_last),
      keep_best_(options.keep_best),
      best_(options.best.of(op, "best")) {
  require(keep_last_ >= 0 && keep_best_ >= 0, ErrorKind::argument, op,
          "keep_last and keep_best must not be negative, got ", keep_last_, " and ", keep_best_);
  std::error_code error;
  fs::create_directories(folder_, error);
  require(io::is_folder(folder_), ErrorKind::io, op, folder_, ": the folder cannot be made: ", error.message());
}

// A measure that is not a number is worse than any that is.
bool CheckpointFolder::better(double a, double b) const {
  if (std::isnan(a) || std::isnan(b)) return !std::isnan(a) && std::isnan(b);
  return best_ == BestIs::min ? a < b : a > b;
}

std::string CheckpointFolder::save(const Checkpoint& checkpoint, std::optional<double> measure) const {
  require(checkpoint.step >= 0, ErrorKind::argument, op, "the step must not be negative, got ", checkpoint.step);
  const std::string path = (fs::path(folder_) / file_name(checkpoint.step)).string();
  io::write_checkpoint("CheckpointFolder::save", path, checkpoint, measure);
  forget();
  return path;
}

std::vector<CheckpointFolder::Item> CheckpointFolder::list() const {
  std::vector<Item> items;
  std::error_code error;
  for (fs::directory_iterator i(folder_, error), end; !error && i != end; i.increment(error)) {
    const std::string name = i->path().filename().string();
    if (!name.starts_with(prefix) || !name.ends_with(suffix)) continue;
    const std::string path = i->path().string();
    try {
      const io::CheckpointSummary summary = io::summarize_checkpoint(*io::MappedFile::open(op, path));
      items.push_back({path, summary.step, summary.measure});
    } catch (const Error&) {
      continue;  // damaged, or not a checkpoint
    }
  }
  require(!error, ErrorKind::io, op, folder_, ": the folder cannot be read: ", error.message());
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.step < b.step; });
  return items;
}

std::optional<std::string> CheckpointFolder::latest() const {
  const std::vector<Item> items = list();
  return items.empty() ? std::nullopt : std::optional(items.back().path);
}

std::optional<std::string> CheckpointFolder::best() const {
  const Item* best = nullptr;
  const std::vector<Item> items = list();
  for (const Item& item : items)
    if (item.measure && (!best || better(*item.measure, *best->measure))) best = &item;
  return best ? std::optional(best->path) : std::nullopt;
}

std::optional<Checkpoint> CheckpointFolder::load_latest() const {
  const std::vector<Item> items = list();
  for (size_t i = items.size(); i-- > 0;) {
    try {
      return load_checkpoint(items[i].path);
    } catch (const Error& e) {
      if (i == 0 || e.kind() != ErrorKind::io) throw;
    }
  }
  return {};
}

void CheckpointFolder::forget() const {
  io::remove_abandoned(folder_);
  std::vector<Item> items = list();
  if (keep_last_ == 0) return;
  std::set<std::string> kept;
  for (size_t i = items.size(); i-- > 0 && kept.size() < size_t(keep_last_);) kept.insert(items[i].path);
  std::erase_if(items, [](const Item& item) { return !item.measure; });
  std::stable_sort(items.begin(), items.end(),
                   [&](const Item& a, const Item& b) { return better(*a.measure, *b.measure); });
  for (size_t i = 0; i < items.size() && i < size_t(keep_best_); ++i) kept.insert(items[i].path);
  std::error_code error;
  for (const Item& item : list())
    if (!kept.contains(item.path)) fs::remove(item.path, error);
}

}  // namespace volta
