// Tables from CSV and TSV files: columns with names and types, to be had as tensors.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <volta/tensor.h>

namespace volta::data {

enum class ColumnType { automatic, integer, number, text };
constexpr std::array<std::string_view, 4> choice_names(ColumnType) {
  return {"automatic", "integer", "number", "text"};
}

struct CsvOptions {
  char delimiter = 0;                     // unless given a tab for files .tsv, .tab, .tsv.gz and .tab.gz, else a comma
  bool header = true;                     // the first line has the names; otherwise they are "0", "1", …
  std::vector<std::string> columns = {};  // only these, in this order
  std::map<std::string, Choice<ColumnType>> types = {};                        // of columns that are not to be guessed
  std::vector<std::string> missing = {"", "NA", "N/A", "NaN", "nan", "null"};  // as numbers they are NaN
  char quote = '"';
};

class Table {
 public:
  using Column = std::variant<std::vector<int64_t>, std::vector<double>, std::vector<std::string>>;
  Table(std::vector<std::string> names, std::vector<Column> columns);
  Table(const Table&);
  Table(Table&&) noexcept;
  Table& operator=(const Table&);
  Table& operator=(Table&&) noexcept;
  ~Table();

  int64_t size() const { return size_; }  // rows
  const std::vector<std::string>& names() const& { return names_; }
  std::vector<std::string> names() &&;
  bool contains(std::string_view name) const;
  const Column& column(std::string_view name) const&;
  Column column(std::string_view name) &&;
  // A column of numbers: i64 where all are whole and none is missing, else f64.
  Tensor operator[](std::string_view name) const;
  const std::vector<std::string>& text(std::string_view name) const&;
  std::vector<std::string> text(std::string_view name) &&;
  // Columns side by side: table.to_tensor({"height", "weight"}) is [rows, 2]. Missing numbers are NaN, and an Error where
  // the dtype has none.
  Tensor to_tensor(const std::vector<std::string>& columns = {}, DType dtype = f32) const;
  // The distinct values of a column, sorted, and for each row the place of its own: labels from names.
  struct Categories {
    std::vector<std::string> names;
    Tensor codes;
  };
  Categories categories(std::string_view column) const;

 private:
  size_t place(std::string_view name) const;
  std::vector<std::string> names_;
  std::map<std::string, size_t, std::less<>> places_;  // of the names
  std::vector<Column> columns_;
  int64_t size_ = 0;
};

// read_csv("iris.csv", {.types = {{"species", "text"}}})["sepal_length"]. Quoted fields may hold delimiters, line ends
// and doubled quotes. Lines with too few or too many fields are an Error with the line's number.
[[nodiscard]] Table read_csv(const std::string& path, const CsvOptions& options = {});
[[nodiscard]] Table parse_csv(std::string_view text, const CsvOptions& options = {},
                              const std::string& name = "the text");

}  // namespace volta::data
