// History as values and as a table.
#include <volta/train/history.h>

#include <ostream>

#include "train/text.h"

namespace volta {

std::vector<double> History::values(const std::string& name) const {
  std::vector<double> list;
  for (const EpochRecord& e : epochs) list.push_back(e.values.at(name));
  return list;
}

std::string History::str() const {
  if (epochs.empty()) return "no epoch was completed\n";
  std::vector<std::vector<std::string>> rows = {{"epoch"}};
  for (const std::string& name : epochs.front().values.names()) rows[0].push_back(name);
  for (const EpochRecord& e : epochs) {
    std::vector<std::string> row = {std::to_string(e.epoch)};
    for (size_t i = 1; i < rows[0].size(); ++i)
      row.push_back(e.values.contains(rows[0][i]) ? short_text(e.values.at(rows[0][i])) : "");
    rows.push_back(std::move(row));
  }
  return table_text(rows);
}

std::ostream& operator<<(std::ostream& out, const History& history) { return out << history.str(); }

}  // namespace volta
