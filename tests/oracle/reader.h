// Reads the oracle's files; their format is described in make.py.
#pragma once
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include <volta/volta.h>

namespace volta::oracle {

inline constexpr int64_t nothing = -1;

struct Stored {  // an array in the data
  DType dtype = f32;
  Shape shape;
  int64_t at = nothing;
};

struct Input {
  Stored data;
  Shape shape;  // differs from the data's where the operand is expanded to it
  int64_t grad = nothing, grad_exact = nothing;
};

struct Output {
  Stored data;
  int64_t exact = nothing, cotangent = nothing;
};

// The arguments of a call by name.
class Args {
 public:
  explicit Args(const std::string& words) {
    std::istringstream in(words == "-" ? "" : words);
    for (std::string pair; std::getline(in, pair, ';');) {
      const size_t equals = pair.find('=');
      values_[pair.substr(0, equals)] = pair.substr(equals + 1);
    }
  }
  bool has(const std::string& key) const { return values_.contains(key); }
  const std::string& text(const std::string& key) const { return values_.at(key); }
  int64_t whole(const std::string& key, int64_t otherwise) const {
    return has(key) ? std::stoll(text(key)) : otherwise;
  }
  double number(const std::string& key, double otherwise) const { return has(key) ? std::stod(text(key)) : otherwise; }
  bool flag(const std::string& key) const { return whole(key, 0) != 0; }
  std::optional<int64_t> maybe(const std::string& key) const {
    if (!has(key) || text(key) == "none") return {};
    return whole(key, 0);
  }
  std::optional<double> maybe_number(const std::string& key) const {
    if (!has(key)) return {};
    return number(key, 0);
  }
  std::vector<int64_t> list(const std::string& key) const {
    std::vector<int64_t> values;
    std::istringstream in(has(key) ? text(key) : "");
    for (std::string word; std::getline(in, word, ',');) values.push_back(std::stoll(word));
    return values;
  }
  Shape shape(const std::string& key) const {
    Shape shape;
    for (int64_t n : list(key)) shape.push_back(n);
    return shape;
  }
  Axes axes(const std::string& key) const { return Axes(list(key)); }

 private:
  std::map<std::string, std::string> values_;
};

struct Case {
  std::string op, dtype, label;
  Args args;
  std::vector<std::variant<Input, Scalar>> operands;
  std::vector<Output> outputs;
};

struct Promotion {
  std::string op, a, b;
  DType result;
};

struct Oracle {
  std::map<std::string, std::vector<Case>> cases;  // by op
  std::vector<Promotion> promotions;
  std::string data;
};

inline DType dtype_named(const std::string& word) {
  for (int i = 0; i < dtype_count; ++i)
    if (name(DType(i)) == word) return DType(i);
  throw std::runtime_error("the oracle names an unknown dtype: " + word);
}

inline Shape shape_named(const std::string& word) {
  Shape shape;
  std::istringstream in(word == "." ? "" : word);
  for (std::string n; std::getline(in, n, ',');) shape.push_back(std::stoll(n));
  return shape;
}

inline Scalar scalar_named(const std::string& kind, const std::string& value) {
  if (kind == "float") return Scalar(std::stod(value));
  if (kind == "bool") return Scalar(value == "1");
  return Scalar(int64_t(std::stoll(value)));
}

// Adds one file's cases, and its arrays behind those of the files before.
inline void read_file(const std::filesystem::path& path, Oracle& oracle) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  if (!std::getline(file, line) || line != "volta oracle 2") throw std::runtime_error("no oracle in " + path.string());
  oracle.data.resize((oracle.data.size() + 7) / 8 * 8);
  const auto offset = [base = int64_t(oracle.data.size())](const std::string& word) {
    return word == "-" ? nothing : base + std::stoll(word);
  };
  Case* current = nullptr;
  while (std::getline(file, line) && line != "data") {
    std::istringstream words(line);
    std::string w[7];
    for (std::string& word : w) words >> word;
    if (w[0] == "case") {
      auto& list = oracle.cases[w[1]];
      list.push_back({w[1], w[2], w[3], Args(w[4]), {}, {}});
      current = &list.back();
    } else if (w[0] == "in") {
      const Shape shape = shape_named(w[2]), base = w[4] == "-" ? shape : shape_named(w[4]);
      current->operands.push_back(Input{{dtype_named(w[1]), base, offset(w[3])}, shape, offset(w[5]), offset(w[6])});
    } else if (w[0] == "num") {
      current->operands.push_back(scalar_named(w[1], w[2]));
    } else if (w[0] == "out") {
      current->outputs.push_back({{dtype_named(w[1]), shape_named(w[2]), offset(w[3])}, offset(w[4]), offset(w[5])});
    } else if (w[0] == "promote") {
      oracle.promotions.push_back({w[1], w[2], w[3], dtype_named(w[4])});
    }
  }
  oracle.data.append(std::istreambuf_iterator<char>(file), {});
}

// All files of a folder.
inline Oracle read(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".oracle") files.push_back(entry.path());
  if (files.empty()) throw std::runtime_error("no oracle in " + folder);
  std::ranges::sort(files);
  Oracle oracle;
  for (const auto& file : files) read_file(file, oracle);
  return oracle;
}

}  // namespace volta::oracle
