// volta predict: what a trained model says about files: images, tables, arrays.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "command.h"
#include "inputs.h"
#include "requests.h"
#include "text_model.h"

namespace volta::app {
namespace {

// The inputs of a file as [n, …].
Tensor inputs_of(const std::string& path, const Recipe& recipe) {
  const std::string ending = std::filesystem::path(path).extension().string();
  if (ending == ".npy") {
    const Tensor x = read_npy(path);
    return x.shape() == recipe.input() ? x.unsqueeze(0) : x;
  }
  if (recipe.takes_images()) return image_of_file(path, recipe);
  const data::Table table = data::read_csv(path);
  const auto missing = std::find_if(recipe.columns.begin(), recipe.columns.end(),
                                    [&](const std::string& column) { return !table.contains(column); });
  if (missing != recipe.columns.end())
    throw Error(Error::Kind::argument, "predict", path + " lacks the column '" + *missing + "'");
  return numbers_of(table, recipe.columns.empty() ? table.names() : recipe.columns, path);
}

std::string place(const std::string& file, int64_t row, bool several) {
  return several ? file + ":" + std::to_string(row + 1) : file;
}

void check_finite(const Tensor& items, const std::string& file, const std::string& what) {
  if (const auto row = not_finite(items))
    throw Error(Error::Kind::argument, "predict", place(file, *row, items.size(0) > 1) + ": " + what);
}

void print(const std::string& file, int64_t row, bool several, const Tensor& y, const Recipe& recipe,
           const Common& common) {
  const std::string where = place(file, row, several);
  if (recipe.task == Task::regress) {
    const std::vector<double> values = y.to(f64).to_vector<double>();
    // A key may be there once only.
    const std::string label =
        recipe.labels.empty() || (common.json && recipe.labels[0] == "input") ? "output" : recipe.labels[0];
    if (common.json) std::printf("%s\n", dumped({{"input", where}, {label, values[0]}}).c_str());
    else std::printf("%s: %s %.6g\n", printable(where).c_str(), printable(label).c_str(), values[0]);
    return;
  }
  const Tensor p = softmax(y.to(f32), -1);
  const auto [best, order] = topk(p, std::min<int64_t>(3, p.numel()), -1);
  const std::vector<float> shares = best.to_vector<float>();
  const std::vector<int64_t> classes = order.to_vector<int64_t>();
  const auto label = [&](int64_t c) {
    return size_t(c) < recipe.labels.size() ? recipe.labels[size_t(c)] : std::to_string(c);
  };
  if (common.json) {
    std::printf("%s\n", dumped({{"input", where},
                                {"class", classes[0]},
                                {"label", label(classes[0])},
                                {"probability", shares[0]},
                                {"probabilities", p.to_vector<float>()}})
                            .c_str());
    return;
  }
  std::printf("%s: %s %.1f%%", printable(where).c_str(), common.terminal().bold(printable(label(classes[0]))).c_str(),
              100 * double(shares[0]));
  for (size_t i = 1; i < classes.size(); ++i)
    std::printf("%s%s %.1f%%", i == 1 ? "  (" : ", ", printable(label(classes[i])).c_str(), 100 * double(shares[i]));
  std::printf("%s\n", classes.size() > 1 ? ")" : "");
}

// Each file as a text: how well the model foresees it, and what it takes to follow.
void judge(const std::vector<std::string>& files, Network network, const Common& common) {
  const TextModel model(std::make_shared<const Network>(std::move(network)));
  for (const std::string& file : files) {
    const std::string text = data::read_text(file);
    Judged found;
    try {
      found = model.judge(text);
    } catch (const Error& e) {
      throw Error(e.kind(), "predict", file + ": " + std::string(e.what()).substr(e.op().size() + 2));
    }
    if (common.json) {
      nlohmann::json next = nlohmann::json::array(), one = {{"input", file}, {"tokens", found.tokens}};
      for (const auto& [token, p] : found.next) next.push_back({{"token", token}, {"probability", p}});
      if (found.loss) one["loss"] = *found.loss, one["perplexity"] = std::exp(*found.loss);
      one["next"] = next;
      std::printf("%s\n", dumped(one).c_str());
      continue;
    }
    std::printf("%s: ", printable(file).c_str());
    if (found.loss) std::printf("loss %.4f, perplexity %.2f; ", *found.loss, std::exp(*found.loss));
    std::printf("next");
    for (size_t i = 0; i < found.next.size(); ++i)
      std::printf("%s '%s' %.1f%%", i == 0 ? "" : ",", printable(found.next[i].first).c_str(),
                  100 * found.next[i].second);
    std::printf("\n");
  }
}

}  // namespace

void add_predict(Command program, Common& common) {
  Command command = program.command("predict", "what a trained model says about files (images, CSV, npy, text)");
  struct Flags {
    std::string file;
    std::vector<std::string> inputs;
  };
  auto flags = std::make_shared<Flags>();
  command.option("model", flags->file, "a file that volta train saved").required();
  command.option("files", flags->inputs, "images, tables, arrays or texts").required();
  command.on_run([&common, flags] {
    if (common.threads > 0) set_num_threads(common.threads);
    Network network = Network::load(flags->file);
    if (network.recipe.task == Task::language) return judge(flags->inputs, std::move(network), common);
    const InferenceMode inference;
    for (const std::string& file : flags->inputs) {
      const Tensor x = inputs_of(file, network.recipe);
      const Shape item = network.recipe.input();
      if (x.dim() != item.size() + 1 || x.numel() != x.size(0) * item.numel())
        throw Error(Error::Kind::shape, "predict",
                    file + " holds " + x.shape().str() + "; the model takes " + item.str() + " or several of that");
      check_finite(x, file, "values are missing, infinite or beyond a 32-bit float");
      const Tensor y = network(network.prepared(x));
      check_finite(y, file, "the values are so large that the model's answer is not finite");
      for (int64_t i = 0; i < y.size(0); ++i) print(file, i, y.size(0) > 1, y[i], network.recipe, common);
    }
  });
}

}  // namespace volta::app
