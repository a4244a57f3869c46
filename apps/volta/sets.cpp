#include "sets.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>

#ifdef VOLTA_IMAGES
#include <volta/data/image.h>
#endif

namespace volta::app {
namespace {

namespace fs = std::filesystem;
using Item = std::tuple<Tensor, Tensor>;

[[noreturn]] void fail(const std::string& why) { throw Error(Error::Kind::argument, "data", why); }

constexpr const char* known =
    "digits, austen, mnist:FOLDER, fashion-mnist:FOLDER, cifar10:FOLDER, cifar100:FOLDER, images:FOLDER, csv:FILE, "
    "text:FILE";

// The folder of a set that ships: VOLTA_DATA, beside an installed program, or in the source tree it was built from.
std::string shipped(const std::string& what) {
  std::vector<fs::path> places;
  if (const char* const given = std::getenv("VOLTA_DATA")) places.emplace_back(given);
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!error) places.push_back(self.parent_path().parent_path() / "share/volta/data");
  if (!error)
    for (fs::path up = self.parent_path(); up.has_relative_path(); up = up.parent_path()) places.push_back(up / "data");
  places.emplace_back("data");
  for (const fs::path& place : places)
    if (fs::is_directory(place / what, error)) return (place / what).string();
  fail("cannot find the shipped set '" + what + "': set VOLTA_DATA to the folder that holds it");
}

// Mean and deviation of rows of numbers that come in parts. Sums of squares would cancel where the mean is large.
class Moments {
 public:
  void add(const Tensor& rows) {
    const Tensor x = rows.to(f64), mean = x.mean(1), spread = (x - mean.unsqueeze(1)).square().sum(1);
    const auto all = double(count_ + x.size(1));
    const Tensor apart = count_ > 0 ? mean - mean_ : zeros_like(mean);
    spread_ = count_ > 0 ? spread_ + spread + apart.square() * (double(count_) * double(x.size(1)) / all) : spread;
    mean_ = count_ > 0 ? mean_ + apart * (double(x.size(1)) / all) : mean;
    count_ += x.size(1);
  }
  void keep(Recipe& recipe) const {
    if (count_ == 0) fail("the set is empty");
    const Tensor deviation = (spread_ / double(count_)).sqrt();
    // What is constant but for rounding stays as large as it is: another value may come one day.
    const Tensor constant = deviation <= clamp_min(mean_.abs() * 1e-12, 1e-30);
    recipe.mean = mean_.to_vector<double>();
    recipe.deviation = where(constant, ones_like(deviation), deviation).to_vector<double>();
  }

 private:
  int64_t count_ = 0;
  Tensor mean_, spread_;
};

// Per channel, of up to a thousand images spread over the set.
void measure(const Items& set, Recipe& recipe) {
  const int64_t n = set.size(), count = std::min<int64_t>(n, 1000);
  Moments moments;
  for (int64_t i = 0; i < count; ++i) moments.add(std::get<0>(set.get(i * n / count)).flatten(1));
  moments.keep(recipe);
}

std::vector<std::string> numbered(int64_t count) {
  std::vector<std::string> list;
  for (int64_t i = 0; i < count; ++i) list.push_back(std::to_string(i));
  return list;
}

Tensor resized(const Tensor& images, const SetFlags& f) {
  const int64_t h = f.height > 0 ? f.height : images.size(2), w = f.width > 0 ? f.width : images.size(3);
  if (images.size(2) == h && images.size(3) == w) return images;
  return interpolate(images, {.size = {h, w}, .mode = "bilinear", .antialias = true});
}

NamedSet image_set(const data::LabelledImages& train, const data::LabelledImages& test, std::vector<std::string> labels,
                   const SetFlags& f) {
  const auto fitted = [&](const data::LabelledImages& set) {
    return Items(data::TensorDataset(resized(set.tensors()[0], f), set.tensors()[1]));
  };
  NamedSet made{fitted(train), fitted(test), {}};
  const Shape item = std::get<0>(made.train.get(0)).shape();
  made.recipe.sizes = {
      {"channels", item[0]}, {"height", item[1]}, {"width", item[2]}, {"classes", int64_t(labels.size())}};
  made.recipe.labels = std::move(labels);
  measure(made.train, made.recipe);
  return made;
}

const std::vector<std::string> fashion = {"T-shirt", "trouser", "pullover", "dress", "coat",
                                          "sandal",  "shirt",   "sneaker",  "bag",   "boot"};
const std::vector<std::string> cifar = {"airplane", "automobile", "bird",  "cat",  "deer",
                                        "dog",      "frog",       "horse", "ship", "truck"};

#ifdef VOLTA_IMAGES
NamedSet folder_set(const std::string& path, SetFlags f) {
  for (int64_t* side : {&f.height, &f.width})
    if (*side == 0) *side = 224;
  const auto fitted = [&](const data::ImageFolder& folder) {
    return Items(data::map(folder, [h = f.height, w = f.width](const Tensor& image, int64_t label) {
      Tensor x = image.to(f32) / 255;
      x = interpolate(x.unsqueeze(0), {.size = {h, w}, .mode = "bilinear", .antialias = true}).squeeze(0);
      return Item(x, tensor(label));
    }));
  };
  const auto part = [&](std::initializer_list<const char*> names) -> std::optional<std::string> {
    std::error_code error;
    for (const char* name : names)
      if (fs::is_directory(fs::path(path) / name, error)) return (fs::path(path) / name).string();
    return {};
  };
  const auto train = part({"train", "training"}), test = part({"test", "val", "valid", "validation"});
  const data::ImageFolder all(train && test ? *train : path, {.min_side = std::min(f.height, f.width)});
  NamedSet made{fitted(all), fitted(all), {}};
  if (train && test) {
    const data::ImageFolder held(*test, {.min_side = std::min(f.height, f.width)});
    if (held.classes() != all.classes()) fail(*train + " and " + *test + " have different classes");
    made.test = fitted(held);
  } else {
    auto [some, rest] = data::random_split(made.train, 1 - f.held_out, {.seed = f.seed});
    made.train = some, made.test = rest;
  }
  made.recipe.sizes = {
      {"channels", 3}, {"height", f.height}, {"width", f.width}, {"classes", int64_t(all.classes().size())}};
  made.recipe.labels = all.classes();
  measure(made.train, made.recipe);
  return made;
}
#endif

struct TableData {
  Tensor x, y;
  std::string target;
  std::vector<std::string> columns, labels, left_out;
  Task task = Task::regress;
};

// Columns of numbers as inputs. A target of names, or of few whole numbers, is a class.
TableData table_data(const std::string& path, const std::string& wanted) {
  const data::Table table = data::read_csv(path);
  TableData d;
  const std::vector<std::string>& columns = table.names();
  if (columns.size() == 1 && columns[0].find_first_of(";\t|") != std::string::npos)
    fail(path + " has the one column '" + columns[0] +
         "': its fields must be separated by commas, or by tabs in a .tsv");
  const std::string target = d.target = wanted.empty() ? columns.back() : wanted;
  if (!table.contains(target)) fail(path + " has no column '" + target + "'");
  for (const std::string& name : columns)
    if (name != target)
      (std::holds_alternative<std::vector<std::string>>(table.column(name)) ? d.left_out : d.columns).push_back(name);
  if (d.columns.empty()) fail(path + " has no columns of numbers beside '" + target + "'");
  d.x = table.to_tensor(d.columns);
  const auto check_finite = [&](const Tensor& values) {
    if (!all(isfinite(values)).item<bool>())
      fail(path + ": values are missing or infinite; fill them or leave out those rows");
  };
  check_finite(d.x);
  const bool names = std::holds_alternative<std::vector<std::string>>(table.column(target));
  const bool whole = std::holds_alternative<std::vector<int64_t>>(table.column(target));
  if (names || whole) {
    const auto categories = table.categories(target);
    const std::string& first = categories.names.empty() ? target : categories.names[0];
    if (first.find_first_not_of(' ') == std::string::npos)
      fail(path + ": values of '" + target + "', which is to be predicted, are missing; leave out those rows");
    if (names || categories.names.size() <= 20) {
      d.task = Task::classify, d.labels = categories.names, d.y = categories.codes;
      return d;
    }
  }
  d.labels = {target}, d.y = table[target].to(f32).unsqueeze(1);
  check_finite(d.y);
  return d;
}

NamedSet table_set(const std::string& path, const SetFlags& f) {
  const TableData d = table_data(path, f.target);
  const auto [train, test] = data::random_split(data::TensorDataset(d.x, d.y), 1 - f.held_out, {.seed = f.seed});
  NamedSet made{train, test, {}};
  made.recipe.task = d.task;
  made.recipe.sizes = {{"inputs", d.x.size(1)}, {"classes", int64_t(d.labels.size())}};
  made.recipe.labels = d.labels, made.recipe.columns = d.columns, made.recipe.target = d.target;
  made.left_out = d.left_out;
  Moments moments;
  if (train.size() > 0) moments.add(d.x.index_select(0, tensor(train.indices())).t());
  moments.keep(made.recipe);
  return made;
}

// The last part of a text is held out: blocks drawn from everywhere would overlap in style, and a test should not.
NamedSet text_set(const std::string& path, const SetFlags& f) {
  const std::string text = data::read_text(path);
  const data::CharTokenizer tokenizer(text);
  const std::vector<int64_t> tokens = tokenizer.encode(text);
  const auto cut = std::ptrdiff_t(double(tokens.size()) * (1 - f.held_out));
  const auto blocks = [&](auto begin, auto end) {
    return data::text_blocks(std::vector<int64_t>(begin, end), f.context);
  };
  NamedSet made{blocks(tokens.begin(), tokens.begin() + cut), blocks(tokens.begin() + cut, tokens.end()), {}};
  made.recipe.task = Task::language;
  made.recipe.sizes = {{"vocab", tokenizer.vocab_size()}, {"context", f.context}};
  made.recipe.tokens = tokenizer.characters();
  return made;
}

}  // namespace

std::string kind_of_items(const std::string& name) {
  static const std::map<std::string, std::string> kinds = {
      {"digits", "image"}, {"mnist", "image"}, {"fashion-mnist", "image"}, {"cifar10", "image"}, {"cifar100", "image"},
      {"images", "image"}, {"csv", "table"},   {"text", "text"},           {"austen", "text"}};
  const auto found = kinds.find(name.substr(0, name.find(':')));
  if (found != kinds.end()) return found->second;
  fail("there is no data set '" + name + "'; known are " + known);
}

NamedSet open_set(const SetFlags& f) {
  kind_of_items(f.name);  // throws where there is no such set
  if (!(f.held_out > 0 && f.held_out < 1))
    fail("the share held out must be between 0 and 1, not " + std::to_string(f.held_out));
  const size_t colon = f.name.find(':');
  const std::string kind = f.name.substr(0, colon), path = colon == std::string::npos ? "" : f.name.substr(colon + 1);
  if (kind == "digits") {
    const std::string folder = path.empty() ? shipped("digits") : path;
    return image_set(data::digits(folder), data::digits(folder, {.train = false}), numbered(10), f);
  }
  if (kind == "austen") {
    const std::string folder = path.empty() ? shipped("austen") : path;
    return text_set(folder + "/pride-and-prejudice.txt", f);
  }
  if (path.empty()) fail("'" + f.name + "' needs a path after a colon; known are " + known);
  if (kind == "mnist" || kind == "fashion-mnist")
    return image_set(data::mnist(path), data::mnist(path, {.train = false}), kind == "mnist" ? numbered(10) : fashion,
                     f);
  if (kind == "cifar10") return image_set(data::cifar10(path), data::cifar10(path, {.train = false}), cifar, f);
  if (kind == "cifar100")
    return image_set(data::cifar100(path), data::cifar100(path, {.train = false}), numbered(100), f);
  if (kind == "csv") return table_set(path, f);
  if (kind == "text") return text_set(path, f);
#ifdef VOLTA_IMAGES
  return folder_set(path, f);
#else
  fail("this build reads no images: it was made without libjpeg and libpng");
#endif
}

Items test_items(SetFlags f, const Recipe& recipe) {
  if (recipe.takes_images()) f.height = recipe.size("height"), f.width = recipe.size("width");
  if (recipe.task == Task::language) f.context = recipe.size("context");
  NamedSet set = open_set(f);
  if (set.recipe.takes_images() != recipe.takes_images() || set.recipe.task != recipe.task)
    fail("'" + f.name + "' is not the kind of data that this model takes");
  if (set.recipe.task == Task::language) {
    if (recipe.tokens.empty())
      fail("'" + f.name +
           "' is read as characters, and the model has a vocabulary of byte pairs: volta predict measures "
           "it on a text");
    if (set.recipe.tokens != recipe.tokens)
      fail("'" + f.name + "' has other characters than the text the model was trained on");
  } else if (set.recipe.labels != recipe.labels || set.recipe.columns != recipe.columns ||
             set.recipe.input() != recipe.input()) {
    fail("'" + f.name + "' has other classes, columns or shapes than the data the model was trained on");
  }
  return set.test;
}

}  // namespace volta::app
