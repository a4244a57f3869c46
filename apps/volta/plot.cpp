// volta plot: the curves of a run as a picture.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "chart.h"
#include "command.h"
#include "inputs.h"
#include "network.h"
#include "requests.h"

#ifdef VOLTA_IMAGES
#include <volta/data/image.h>
#endif

namespace volta::app {
namespace {

// Columns of the log that start alike go on one chart: loss and val_loss, accuracy and val_accuracy.
std::vector<Chart> charts_of(const std::string& log) {
  const data::Table table = data::read_csv(log);
  if (!table.contains("epoch"))
    throw Error(Error::Kind::argument, "plot", log + " is no log of volta train: it has no column 'epoch'");
  const auto column = [&](const std::string& name) {
    return numbers_of(table, {name}, log, f64).flatten().to_vector<double>();
  };
  const std::vector<double> epochs = column("epoch");
  std::vector<Chart> charts;
  for (const std::string& name : table.names()) {
    if (name == "epoch" || name == "step" || name == "seconds" || name == "lr" || name == "skipped" ||
        name.rfind("val_", 0) == 0)
      continue;
    Chart chart{name, "epoch", {{"train", epochs, column(name)}}};
    if (table.contains("val_" + name)) chart.series.push_back({"test", epochs, column("val_" + name)});
    charts.push_back(std::move(chart));
  }
  if (charts.empty() || epochs.empty())
    throw Error(Error::Kind::argument, "plot", log + " holds no curves: no epoch has ended yet");
  return charts;
}

#ifdef VOLTA_IMAGES
constexpr bool writes_png = true;
std::string png(const Drawing& drawing) { return data::encode_png(pixels(drawing, 2)); }
#else
constexpr bool writes_png = false;
std::string png(const Drawing&) {
  throw Error(Error::Kind::argument, "plot",
              "this build writes no PNG: it was made without libpng. Give --out a name that ends in .svg, or install "
              "libpng and libjpeg and build again");
}
#endif

// The whole picture or, on a full disk, the one before it.
void write(const std::string& path, const Drawing& drawing) {
  const std::string picture = path.ends_with(".png") ? png(drawing) : svg(drawing), fresh = path + ".new";
  std::FILE* const file = std::fopen(fresh.c_str(), "wb");
  const bool written = file && std::fwrite(picture.data(), 1, picture.size(), file) == picture.size();
  if (file && std::fclose(file) == 0 && written && std::rename(fresh.c_str(), path.c_str()) == 0) return;
  const int error = errno;
  if (file) std::remove(fresh.c_str());
  throw Error(Error::Kind::io, "plot", "cannot write " + path + ": " + std::strerror(error));
}

// What --out says, or both kinds beside the log.
std::vector<std::string> pictures_of(const std::string& out, const std::filesystem::path& folder) {
  if (out.empty()) {
    std::vector<std::string> both = {(folder / "curves.svg").string()};
    if (writes_png) both.push_back((folder / "curves.png").string());
    return both;
  }
  if (!out.ends_with(".svg") && !out.ends_with(".png"))
    throw Error(Error::Kind::argument, "plot", "--out " + out + " must end in .svg or .png");
  return {out};
}

}  // namespace

void add_plot(Command program, Common& common) {
  Command command = program.command("plot", "curves of loss and metrics of a run, as SVG and PNG");
  struct Flags {
    std::string run, out;
  };
  auto flags = std::make_shared<Flags>();
  command.option("run", flags->run, "the folder of a run, or its log.csv").required();
  command.option("--out", flags->out, "a picture, .svg or .png (default: curves.svg and .png in the run's folder)");
  command.on_run([&common, flags] {
    const std::filesystem::path run(flags->run);
    std::error_code error;
    const bool folder = std::filesystem::is_directory(run, error);
    const Drawing drawing = drawn(charts_of(folder ? (run / "log.csv").string() : flags->run));
    for (const std::string& picture : pictures_of(flags->out, folder ? run : run.parent_path())) {
      write(picture, drawing);
      std::printf("%s\n", common.json ? dumped({{"file", picture}}).c_str() : picture.c_str());
    }
  });
}

}  // namespace volta::app
