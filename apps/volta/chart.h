// Line charts of a run's numbers.
#pragma once
#include <string>
#include <vector>

#include "drawing.h"

namespace volta::app {

struct Series {
  std::string name;
  std::vector<double> x, y;  // points that are not finite are left out
};
struct Chart {
  std::string title, x_label;
  std::vector<Series> series;
};

Drawing drawn(const std::vector<Chart>& charts);  // side by side

}  // namespace volta::app
