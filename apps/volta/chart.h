// Line charts of a run's numbers, as SVG.
#pragma once
#include <string>
#include <vector>

namespace volta::app {

struct Series {
  std::string name;
  std::vector<double> x, y;  // points that are not finite are left out
};
struct Chart {
  std::string title, x_label, y_label;
  std::vector<Series> series;
};

std::string svg(const std::vector<Chart>& charts);  // side by side

}  // namespace volta::app
