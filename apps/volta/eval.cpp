// volta eval: how good a trained model is on a data set.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "command.h"
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
  command.option("--target", flags->set.target, "of a table: the column that is predicted");
  command.option("--held-out", flags->set.held_out, "as in training").shown().within(0.01, 0.9);
  command.option("--seed", flags->set.seed, "as in training").shown();
  command.option("--device", flags->device, "cpu or cuda").shown();
  command.flag("--confusion", flags->confusion, "print how often each class was taken for which");
  command.on_run([&common, flags] {
    if (common.threads > 0) set_num_threads(common.threads);
    Network network = Network::load(flags->file);
    const Recipe& recipe = network.recipe;
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
    if (common.json) std::printf("%s\n", all.dump().c_str());
    else std::printf("%-12s %lld\n", "items", static_cast<long long>(items.size()));
    if (!flags->confusion || common.json || recipe.task != Task::classify) return;
    metrics::ConfusionMatrix confusion(recipe.size("classes"));
    const InferenceMode inference;
    for (auto [x, y] : loader) confusion.update(network(x), y);
    print_confusion(confusion.compute(), recipe.labels);
  });
}

}  // namespace volta::app
