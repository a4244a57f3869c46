// volta eval: how good a trained model is on a data set.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "command.h"
#include "requests.h"
#include "training.h"

namespace volta::app {
namespace {

void print_confusion(const Tensor& counts, const std::vector<std::string>& labels) {
  size_t width = 4;
  for (const std::string& label : labels) width = std::max(width, printable(label).size());
  const std::vector<int64_t> values = counts.to(i64).to_vector<int64_t>();
  std::printf("\n%*s  predicted\n%*s ", int(width), "true", int(width), "");
  for (const std::string& label : labels) std::printf(" %6.6s", printable(label).c_str());
  std::printf("\n");
  for (size_t i = 0; i < labels.size(); ++i) {
    std::printf("%*s ", int(width), printable(labels[i]).c_str());
    for (size_t j = 0; j < labels.size(); ++j)
      std::printf(" %6lld", static_cast<long long>(values[i * labels.size() + j]));
    std::printf("\n");
  }
}

// A row for each true class.
nlohmann::json rows_of(const Tensor& counts) {
  nlohmann::json rows = nlohmann::json::array();
  for (int64_t i = 0; i < counts.size(0); ++i) rows.push_back(counts[i].to(i64).to_vector<int64_t>());
  return rows;
}

}  // namespace

void add_eval(Command program, Common& common) {
  Command command = program.command("eval", "measure a trained model on a data set");
  struct Flags {
    std::string file, device = "cpu";
    SetFlags set;
    bool confusion = false;
  };
  auto flags = std::make_shared<Flags>();
  command.option("model", flags->file, "a file that volta train saved").required();
  command.option("--data", flags->set.name, "the set, as for volta train; its test items are used").required();
  command.option("--target", flags->set.target, "of a table: the column that is predicted (default: as in training)");
  command.option("--held-out", flags->set.held_out, "share of the items that is used (default: as in training)")
      .within(0.01, 0.9);
  command.option("--seed", flags->set.seed, "of the choice of those items (default: as in training)").not_negative();
  command.option("--device", flags->device, "cpu or cuda").shown();
  command.flag("--confusion", flags->confusion, "print how often each class was taken for which");
  command.on_run([&common, flags, command] {
    Program::check_usage([&] { kind_of_items(flags->set.name), check_device(flags->device); });
    if (common.threads > 0) set_num_threads(common.threads);
    Network network = Network::load(flags->file);
    const Recipe& recipe = network.recipe;
    // Split as in training: other items would be those the model has learned.
    if (!command.given("target")) flags->set.target = recipe.target;
    if (!command.given("held-out") && recipe.held_out) flags->set.held_out = *recipe.held_out;
    if (!command.given("seed") && recipe.seed) flags->set.seed = *recipe.seed;
    const Items items = test_items(flags->set, recipe);
    std::vector<metrics::AnyMetric> measures = metrics_of(recipe);
    if (recipe.task == Task::classify) {
      if (recipe.size("classes") > 5) measures.emplace_back(metrics::TopK(5));
      measures.emplace_back(metrics::F1({.average = "macro", .num_classes = recipe.size("classes")}));
    }
    data::DataLoader loader(data::map(items, preparing(network)), {.batch_size = 256, .num_workers = 1});
    Dict<double> found = evaluate(network.module, loader,
                                  {.loss = loss_of(recipe), .metrics = measures, .device = Device(flags->device)});
    if (recipe.task == Task::language) found.add("perplexity", std::exp(found.at("loss")));
    nlohmann::json all = {{"items", items.size()}};
    for (const auto& [name, value] : found) {
      all[name] = value;
      if (!common.json) std::printf("%-12s %.4f\n", name.c_str(), value);
    }
    if (!common.json) std::printf("%-12s %lld\n", "items", static_cast<long long>(items.size()));
    if (flags->confusion && recipe.task == Task::classify) {
      metrics::ConfusionMatrix confusion(recipe.size("classes"));
      const InferenceMode inference;
      for (auto [x, y] : loader) confusion.update(network(x.to(Device(flags->device))).cpu(), y);
      const Tensor counts = confusion.compute();
      if (common.json) all["confusion"] = rows_of(counts), all["labels"] = recipe.labels;
      else print_confusion(counts, recipe.labels);
    }
    if (common.json) std::printf("%s\n", dumped(all).c_str());
  });
}

}  // namespace volta::app
