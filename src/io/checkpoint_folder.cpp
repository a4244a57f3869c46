// CheckpointFolder: a file for each step, of which the newest and the best stay.
#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <map>
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

// What the user has put beside them, such as step_best.ckpt, is none of ours.
bool is_file_name(std::string_view name) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix) || name.size() <= prefix.size() + suffix.size())
    return false;
  const std::string_view digits = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  return std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
}

struct Found {
  std::vector<CheckpointFolder::Item> items;      // by step
  std::map<std::string, std::exception_ptr> bad;  // by path: damaged, or of another version
};

Found found_in(const std::string& folder) {
  Found found;
  std::error_code error;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
    std::error_code gone;
    if (!is_file_name(i->path().filename().string()) || !i->is_regular_file(gone)) continue;
    const std::string path = i->path().string();
    std::shared_ptr<io::MappedFile> file;
    try {
      file = io::MappedFile::open(op, path);
    } catch (const Error&) {
      if (!fs::exists(path, gone)) continue;  // another process has removed it
      throw;                                  // which says nothing about what it holds
    }
    try {
      const io::CheckpointSummary summary = io::summarize_checkpoint(*file);
      found.items.push_back({path, summary.step, summary.measure});
    } catch (const Error&) {
      found.bad.emplace(path, std::current_exception());
    }
  }
  require(!error, ErrorKind::io, op, folder, ": the folder cannot be read: ", error.message());
  std::sort(found.items.begin(), found.items.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  return found;
}

}  // namespace

CheckpointFolder::CheckpointFolder(std::string folder, const CheckpointFolderOptions& options)
    : folder_(std::move(folder)),
      keep_last_(options.keep_last),
      keep_best_(options.keep_best),
      best_(options.best.of(op, "best")) {
  require(keep_last_ >= 0 && keep_best_ >= 0, ErrorKind::argument, op, folder_,
          ": keep_last and keep_best must not be negative, got ", keep_last_, " and ", keep_best_);
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
  require(checkpoint.step >= 0, ErrorKind::argument, op, folder_, ": the step must not be negative, got ",
          checkpoint.step);
  const std::string path = (fs::path(folder_) / file_name(checkpoint.step)).string();
  io::write_checkpoint("CheckpointFolder::save", path, checkpoint, measure);
  forget(path);
  return path;
}

std::vector<CheckpointFolder::Item> CheckpointFolder::list() const { return found_in(folder_).items; }

std::optional<std::string> CheckpointFolder::latest() const {
  const std::vector<Item> items = list();
  return items.empty() ? std::nullopt : std::optional(items.back().path);
}

std::optional<std::string> CheckpointFolder::best() const {
  const Item* best = nullptr;
  const std::vector<Item> items = list();
  for (const Item& item : items)
    if (item.measure && !std::isnan(*item.measure) && (!best || better(*item.measure, *best->measure))) best = &item;
  return best ? std::optional(best->path) : std::nullopt;
}

std::optional<Checkpoint> CheckpointFolder::load_latest() const {
  Found found = found_in(folder_);
  for (size_t i = found.items.size(); i-- > 0;) {
    try {
      return load_checkpoint(found.items[i].path);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::io) throw;
      found.bad.emplace(found.items[i].path, std::current_exception());
    }
  }
  if (!found.bad.empty()) std::rethrow_exception(found.bad.rbegin()->second);
  return {};
}

// What has just been saved stays, also where its step is below the others: a run that was begun anew, or went back.
void CheckpointFolder::forget(const std::string& saved) const {
  io::remove_abandoned(folder_);
  if (keep_last_ == 0) return;
  const auto all = attempt([&] { return list(); });
  if (!all) return;  // the next one may: what was to be saved is
  std::vector<Item> items = *all;
  std::set<std::string> kept = {saved};
  for (size_t i = items.size(); i-- > 0 && kept.size() < size_t(keep_last_);) kept.insert(items[i].path);
  std::erase_if(items, [](const Item& item) { return !item.measure; });
  std::stable_sort(items.begin(), items.end(),
                   [&](const Item& a, const Item& b) { return better(*a.measure, *b.measure); });
  for (size_t i = 0; i < items.size() && i < size_t(keep_best_); ++i) kept.insert(items[i].path);
  std::error_code error;
  for (const Item& item : *all)
    if (!kept.contains(item.path)) fs::remove(item.path, error);
}

}  // namespace volta
