// volta summary: the layers of a model, by name or from a file.
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "command.h"
#include "network.h"

namespace volta::app {

void add_summary(Command program, Common& common) {
  Command command =
      program.command("summary", "layers, shapes and parameters of a model; without one, the known models");
  auto model = std::make_shared<std::string>();
  command.option("model", *model, "a model's name, or a file that volta train saved");
  command.on_run([&common, model] {
    const Terminal terminal = common.terminal();
    if (model->empty()) {
      for (const Architecture& a : architectures()) {
        if (terminal.json)
          std::printf(
              "%s\n",
              nlohmann::json{{"model", a.name}, {"summary", a.summary}, {"inputs", a.inputs}, {"sizes", a.sizes}}
                  .dump()
                  .c_str());
        else std::printf("%-10s %s\n", a.name.c_str(), a.summary.c_str());
      }
      return;
    }
    std::error_code error;
    const bool from_file = std::filesystem::exists(*model, error);
    if (!from_file) Program::check_usage([&] { architecture(*model); });
    Recipe recipe;
    recipe.model = *model;
    if (!from_file && architecture(*model).inputs[0] == "image")
      recipe.sizes = {{"channels", 1}, {"height", 28}, {"width", 28}};
    if (!from_file) recipe.task = usual_task(architecture(*model));
    Network network = from_file ? Network::load(*model) : Network(recipe);
    Shape input{1};
    for (const int64_t n : network.recipe.input()) input.push_back(n);
    if (terminal.json) {
      std::printf("%s\n", nlohmann::json{{"model", network.recipe.model},
                                         {"parameters", num_parameters(network.module)},
                                         {"recipe", nlohmann::json::parse(network.recipe.json())}}
                              .dump()
                              .c_str());
      return;
    }
    const bool text = network.recipe.task == Task::language;
    const Tensor example = text ? zeros(input, {.dtype = i64}) : zeros(input);
    std::printf("%s\n", volta::summary(network.module, example).c_str());
  });
}

}  // namespace volta::app
