// volta plot: the curves of a run as a picture.
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "chart.h"
#include "command.h"
#include "network.h"

namespace volta::app {
namespace {

// Columns of the log that start alike go on one chart: loss and val_loss, accuracy and val_accuracy.
std::vector<Chart> charts_of(const std::string& log) {
  const data::Table table = data::read_csv(log);
  if (!table.contains("epoch"))
    throw Error(Error::Kind::argument, "plot", log + " is no log of volta train: it has no column 'epoch'");
  const std::vector<double> epochs = table["epoch"].to(f64).to_vector<double>();
  std::vector<Chart> charts;
  for (const std::string& name : table.names()) {
    if (name == "epoch" || name == "step" || name == "seconds" || name == "lr" || name == "skipped" ||
        name.rfind("val_", 0) == 0)
      continue;
    Chart chart{name, "epoch", name, {{"train", epochs, table[name].to(f64).to_vector<double>()}}};
    if (table.contains("val_" + name))
      chart.series.push_back({"test", epochs, table["val_" + name].to(f64).to_vector<double>()});
    charts.push_back(std::move(chart));
  }
  return charts;
}

}  // namespace

void add_plot(CLI::App& program, Common& common) {
  CLI::App* const command = program.add_subcommand("plot", "curves of loss and metrics of a run, as SVG");
  struct Flags {
    std::string run, out;
  };
  auto flags = std::make_shared<Flags>();
  command->add_option("run", flags->run, "the folder of a run, or its log.csv")->required();
  command->add_option("--out", flags->out, "the picture (default: curves.svg in the run's folder)");
  command->callback([&common, flags] {
    const std::filesystem::path run(flags->run);
    const bool folder = std::filesystem::is_directory(run);
    const std::string log = folder ? (run / "log.csv").string() : flags->run;
    const std::string out =
        !flags->out.empty() ? flags->out : (folder ? run / "curves.svg" : run.parent_path() / "curves.svg").string();
    const std::string picture = svg(charts_of(log));
    std::FILE* const file = std::fopen(out.c_str(), "wb");
    const bool written = file && std::fwrite(picture.data(), 1, picture.size(), file) == picture.size();
    if (!file || std::fclose(file) != 0 || !written) throw Error(Error::Kind::io, "plot", "cannot write " + out);
    if (common.json) std::printf("%s\n", nlohmann::json{{"file", out}}.dump().c_str());
    else std::printf("%s\n", out.c_str());
  });
}

}  // namespace volta::app
