// The reader of CSV files: fields, then columns, then their types.
#include <volta/data/csv.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>
#include <numeric>
#include <optional>
#include <set>

#include <volta/ops.h>

#include "core/check.h"
#include "data/file.h"

namespace volta::data {
namespace {

constexpr const char* op = "read_csv";

// Splits a text into lines of fields. Fields without quotes are views of the text.
class Fields {
 public:
  Fields(std::string_view text, char delimiter, char quote, const std::string& name)
      : text_(text), delimiter_(delimiter), quote_(quote), name_(name) {}

  // The next line that is not empty; false at the end.
  bool next(std::vector<std::string>& fields) {
    while (at_ < text_.size() && at_line_end()) skip_line_end();
    if (at_ >= text_.size()) return false;
    first_line_ = line_;
    fields.clear();
    for (;;) {
      fields.push_back(field());
      if (at_ < text_.size() && text_[at_] == delimiter_) {
        ++at_;
        continue;
      }
      if (at_ < text_.size()) skip_line_end();
      return true;
    }
  }
  int64_t line() const { return first_line_; }  // on which the last one began

 private:
  bool at_line_end() const { return text_[at_] == '\n' || text_[at_] == '\r'; }
  void skip_line_end() {
    if (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') ++at_;
    ++at_;
    ++line_;
  }
  std::string field() {
    if (at_ < text_.size() && text_[at_] == quote_) return quoted_field();
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != delimiter_ && !at_line_end()) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  std::string quoted_field() {
    const int64_t begun = line_;
    std::string value;
    for (++at_;;) {
      require(at_ < text_.size(), ErrorKind::io, op, name_, ": the quote that begins on line ", begun, " has no end");
      const char c = text_[at_++];
      if (c == quote_) {
        if (at_ < text_.size() && text_[at_] == quote_) ++at_;
        else break;
      }
      if (c == '\n') ++line_;
      value += c;
    }
    require(at_ == text_.size() || text_[at_] == delimiter_ || at_line_end(), ErrorKind::io, op, name_, ": line ",
            line_, " goes on behind a closing quote; quotes inside a field are written twice");
    return value;
  }

  std::string_view text_;
  char delimiter_, quote_;
  const std::string& name_;
  size_t at_ = 0;
  int64_t line_ = 1, first_line_ = 1;
};

struct Raw {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> columns;
  std::vector<int64_t> lines;  // of the rows
};

void check_names(const std::vector<std::string>& names, const std::string& file, ErrorKind kind) {
  std::set<std::string_view> seen;
  for (const std::string& name : names)
    require(seen.insert(name).second, kind, op, file, " has two columns named ", shown(name));
}

Raw split(std::string_view text, const CsvOptions& options, char delimiter, const std::string& file) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  Fields lines(text, delimiter, options.quote, file);
  std::vector<std::string> row;
  Raw raw;
  bool more = lines.next(row);
  require(more, ErrorKind::io, op, file, " is empty");
  for (size_t i = 0; i < row.size(); ++i) raw.names.push_back(options.header ? row[i] : std::to_string(i));
  check_names(raw.names, file, ErrorKind::io);
  raw.columns.resize(raw.names.size());
  if (options.header) more = lines.next(row);
  for (; more; more = lines.next(row)) {
    require(row.size() == raw.names.size(), ErrorKind::io, op, file, ": line ", lines.line(), " has ", row.size(),
            " fields and the first line ", raw.names.size());
    for (size_t i = 0; i < row.size(); ++i) raw.columns[i].push_back(std::move(row[i]));
    raw.lines.push_back(lines.line());
  }
  return raw;
}

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}
template <class T> std::optional<T> number_in(std::string_view text) {
  std::string_view s = trimmed(text);
  if (s.size() > 1 && s[0] == '+' && s[1] != '-') s.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (s.empty() || end != s.data() + s.size()) return std::nullopt;
  if (error == std::errc()) return value;
  // Beyond a double's range: infinite, or 0.
  if constexpr (std::is_same_v<T, double>) return std::strtod(std::string(s).c_str(), nullptr);
  return std::nullopt;
}

class Typed {
 public:
  Typed(const CsvOptions& options, const std::string& file)
      : missing_(options.missing.begin(), options.missing.end()), file_(file) {}

  Table::Column column(std::vector<std::string>& values, const std::string& name, ColumnType type,
                       const std::vector<int64_t>& lines) const {
    if (type == ColumnType::text) return std::move(values);
    if (type != ColumnType::number) {
      std::vector<int64_t> whole;
      const size_t bad = convert(values, whole, false);
      if (bad == values.size()) return whole;
      if (type == ColumnType::integer) refuse(values[bad], name, "a whole number", lines[bad]);
    }
    std::vector<double> numbers;
    const size_t bad = convert(values, numbers, true);
    if (bad == values.size()) return numbers;
    if (type == ColumnType::number) refuse(values[bad], name, "a number", lines[bad]);
    return std::move(values);
  }

 private:
  // The place of the first that is none, or how many there are.
  template <class T> size_t convert(const std::vector<std::string>& values, std::vector<T>& out, bool may_miss) const {
    out.reserve(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      const bool missing = is_missing(values[i]);  // which whole numbers have no sign for
      const auto x = missing ? std::nullopt : number_in<T>(values[i]);
      if (!x && !(missing && may_miss)) return i;
      out.push_back(x ? *x : T(std::numeric_limits<double>::quiet_NaN()));
    }
    return values.size();
  }
  // Blanks around a mark count as little as those around a number.
  bool is_missing(const std::string& value) const {
    const std::string_view mark = trimmed(value);
    return missing_.contains(value) || (!mark.empty() && missing_.contains(mark));
  }
  [[noreturn]] void refuse(const std::string& value, const std::string& name, const char* wanted, int64_t line) const {
    throw_error(ErrorKind::io, op, file_, ": line ", line, ", column ", shown(name), ": ", shown(value), " is not ",
                wanted);
  }
  std::set<std::string, std::less<>> missing_;
  const std::string& file_;
};

}  // namespace

Table::Table(std::vector<std::string> names, std::vector<Column> columns)
    : names_(std::move(names)), columns_(std::move(columns)) {
  require(names_.size() == columns_.size(), ErrorKind::argument, "Table", names_.size(), " names for ", columns_.size(),
          " columns");
  for (size_t i = 0; i < columns_.size(); ++i) {
    const int64_t rows = std::visit([](const auto& c) { return int64_t(c.size()); }, columns_[i]);
    if (i == 0) size_ = rows;
    require(rows == size_, ErrorKind::shape, "Table", "column ", shown(names_[i]), " has ", rows, " rows, not ", size_);
    places_.emplace(names_[i], i);  // of equal names the first
  }
}

Table::Table(const Table&) = default;
Table::Table(Table&&) noexcept = default;
Table& Table::operator=(const Table&) = default;
Table& Table::operator=(Table&&) noexcept = default;
Table::~Table() = default;

std::vector<std::string> Table::names() && { return std::move(names_); }
Table::Column Table::column(std::string_view name) && { return std::as_const(*this).column(name); }
std::vector<std::string> Table::text(std::string_view name) && { return std::as_const(*this).text(name); }

bool Table::contains(std::string_view name) const { return places_.contains(name); }

size_t Table::place(std::string_view name) const {
  if (const auto found = places_.find(name); found != places_.end()) return found->second;
  std::string known;
  for (size_t i = 0; i < std::min<size_t>(names_.size(), 20); ++i) known += (i > 0 ? ", " : "") + shown(names_[i]);
  throw_error(ErrorKind::index, "Table", "there is no column ", shown(name), "; there are ", known);
}

const Table::Column& Table::column(std::string_view name) const& { return columns_[place(name)]; }

namespace {
template <class T> Tensor on_host(const std::vector<T>& values) {
  return tensor(values, {values.size()}, {.device = Device()});
}
}  // namespace

Tensor Table::operator[](std::string_view name) const {
  const Column& c = column(name);
  if (const auto* whole = std::get_if<std::vector<int64_t>>(&c)) return on_host(*whole);
  if (const auto* numbers = std::get_if<std::vector<double>>(&c)) return on_host(*numbers);
  throw_error(ErrorKind::dtype, "Table", "column ", shown(name), " holds text; text(…) or categories(…) give it");
}

const std::vector<std::string>& Table::text(std::string_view name) const& {
  const auto* strings = std::get_if<std::vector<std::string>>(&column(name));
  require(strings, ErrorKind::dtype, "Table", "column ", shown(name),
          " holds numbers; .types = {{name, \"text\"}} keeps them as text");
  return *strings;
}

Tensor Table::to_tensor(const std::vector<std::string>& columns, DType dtype) const {
  std::vector<Tensor> parts;
  for (const std::string& name : columns.empty() ? names_ : columns) {
    if (const auto* numbers = std::get_if<std::vector<double>>(&column(name)); numbers && !is_floating(dtype)) {
      const auto missing = std::find_if(numbers->begin(), numbers->end(), [](double x) { return std::isnan(x); });
      require(missing == numbers->end(), ErrorKind::argument, "Table", "column ", shown(name), " has no number in row ",
              missing - numbers->begin(), " (the first is 0), for which ", volta::name(dtype),
              " has no value; f32 and f64 keep it as NaN");
    }
    parts.push_back((*this)[name].to(dtype));
  }
  require(!parts.empty(), ErrorKind::argument, "Table", "has no columns");
  return stack(parts, 1);
}

namespace {
template <class T> Table::Categories categories_of(const std::vector<T>& values) {
  std::vector<T> distinct = values;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::vector<int64_t> codes;
  codes.reserve(values.size());
  for (const T& v : values) codes.push_back(std::lower_bound(distinct.begin(), distinct.end(), v) - distinct.begin());
  Table::Categories result{{}, on_host(codes)};
  if constexpr (std::is_same_v<T, std::string>) result.names = std::move(distinct);
  else
    for (const T v : distinct) result.names.push_back(std::to_string(v));  // sorted as numbers: 2 before 10
  return result;
}
}  // namespace

Table::Categories Table::categories(std::string_view name) const {
  const Column& c = column(name);
  if (const auto* strings = std::get_if<std::vector<std::string>>(&c)) return categories_of(*strings);
  if (const auto* whole = std::get_if<std::vector<int64_t>>(&c)) return categories_of(*whole);
  throw_error(ErrorKind::dtype, "Table", "column ", shown(name), " holds fractions, which are no categories");
}

namespace {

Table parsed(std::string_view text, const CsvOptions& options, const std::string& name) {
  const char delimiter = options.delimiter ? options.delimiter : ',';
  require(delimiter != options.quote && delimiter != '\n' && delimiter != '\r', ErrorKind::argument, op,
          "the delimiter is the quote or a line end");
  check_names(options.columns, "the list of columns", ErrorKind::argument);
  Raw raw = split(text, options, delimiter, name);
  std::map<std::string_view, size_t> places;
  for (size_t i = 0; i < raw.names.size(); ++i) places.emplace(raw.names[i], i);
  const auto place = [&](const std::string& column) {
    const auto found = places.find(column);
    require(found != places.end(), ErrorKind::argument, op, name, " has no column ", shown(column));
    return found->second;
  };
  for (const auto& [column, type] : options.types) (void)place(column);
  const Typed typed(options, name);
  std::vector<Table::Column> columns;
  const std::vector<std::string> wanted = options.columns.empty() ? raw.names : options.columns;
  for (const std::string& column : wanted) {
    const auto type = options.types.find(column);
    columns.push_back(typed.column(raw.columns[place(column)], column,
                                   type == options.types.end() ? ColumnType::automatic : type->second.of(op, "types"),
                                   raw.lines));
  }
  return Table(wanted, std::move(columns));
}

}  // namespace

Table parse_csv(std::string_view text, const CsvOptions& options, const std::string& name) {
  try {
    return parsed(text, options, name);
  } catch (const std::bad_alloc&) {
    throw_error(ErrorKind::memory, op, name, " does not fit into memory");
  }
}

Table read_csv(const std::string& path, const CsvOptions& options) {
  CsvOptions chosen = options;
  std::string_view unpacked = path;
  if (unpacked.ends_with(".gz")) unpacked.remove_suffix(3);
  if (!chosen.delimiter) chosen.delimiter = unpacked.ends_with(".tsv") || unpacked.ends_with(".tab") ? '\t' : ',';
  return parse_csv(read_file(path, op), chosen, path);
}

}  // namespace volta::data
