// Writes the headers that declare every op as a function and as a method, and the table of ops for the docs.
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "ops/functions.h"
#include "ops/point_names.h"

namespace {

using volta::As;
using volta::Domain;
using volta::Grad;

struct Declared {
  std::string group, result, name, parameters, doc, dtypes;
  bool method, in_place, differentiable;
  int point = -1;  // index in PointOps
};

std::vector<std::string> split_top_level(const std::string& text) {
  std::vector<std::string> parts;
  int depth = 0;
  std::string part;
  for (char c : text) {
    depth += c == '<' || c == '{' || c == '(';
    depth -= c == '>' || c == '}' || c == ')';
    if (c == ',' && depth == 0) {
      parts.push_back(part);
      part.clear();
    } else if (!(part.empty() && c == ' ')) {
      part += c;
    }
  }
  if (!part.empty()) parts.push_back(part);
  return parts;
}

std::string without_default(const std::string& parameter) { return parameter.substr(0, parameter.find(" =")); }
std::string name_of(const std::string& parameter) {
  const std::string p = without_default(parameter);
  return p.substr(p.find_last_of(" &") + 1);
}

std::string join(const std::vector<std::string>& parts, size_t from, std::string (*f)(const std::string&)) {
  std::string s;
  for (size_t i = from; i < parts.size(); ++i) s += (i > from ? ", " : "") + f(parts[i]);
  return s;
}

std::vector<Declared> all_ops() {
  std::vector<Declared> list;
  int index = 0;
  volta::for_each_point_name([&](const volta::PointName& op) {
    std::string parameters;
    const auto names = split_top_level(op.args);
    for (const std::string& n : names)
      parameters +=
          (parameters.empty() ? "" : ", ") + std::string(names.size() == 1 ? "const Tensor& " : "const Operand& ") + n;
    list.push_back({"pointwise", "Tensor", op.name, parameters, op.doc, op.dtypes, op.masks == 0,
                    op.masks == 0 && !op.truth, op.differentiable && !op.truth, index++});
  });
  for (const volta::Function& f : volta::functions)
    list.push_back({f.group, f.result, f.name, f.parameters, f.doc, "", f.as == As::both, false, f.grad == Grad::yes});
  return list;
}

std::string same(const std::string& p) { return p; }

void write_functions(std::ostream& out, const std::vector<Declared>& ops) {
  out << "// Every op as a function. Generated from src/ops; do not edit.\n#pragma once\n#include <volta/tensor.h>\n\n"
         "namespace volta {\n\n";
  for (const Declared& op : ops) {
    out << "// " << op.doc << "\n" << op.result << " " << op.name << "(" << op.parameters << ");\n";
  }
  out << "\ntemplate <class... X>\n  requires(sizeof...(X) > 0 && (std::is_convertible_v<X, Tensor> && ...))\n"
         "Tensor einsum(const std::string& equation, const X&... operands) {\n"
         "  return einsum(equation, std::vector<Tensor>{operands...});\n}\n";
  out << "\n}  // namespace volta\n";
}

void write_methods(std::ostream& out, const std::vector<Declared>& ops) {
  out << "// Every op as a method of Tensor, included in its definition. Generated from src/ops; do not edit.\n";
  for (const Declared& op : ops) {
    const auto p = split_top_level(op.parameters);
    if (op.method) out << op.result << " " << op.name << "(" << join(p, 1, same) << ") const;\n";
    if (op.in_place) out << "Tensor& " << op.name << "_(" << join(p, 1, same) << ");\n";
  }
}

void write_bodies(std::ostream& out, const std::vector<Declared>& ops) {
  out << "// Bodies of the generated methods. Generated from src/ops; do not edit.\n";
  for (const Declared& op : ops) {
    const auto p = split_top_level(op.parameters);
    const std::string rest = join(p, 1, without_default), names = join(p, 1, name_of);
    if (op.method)
      out << op.result << " Tensor::" << op.name << "(" << rest << ") const { return volta::" << op.name << "(*this"
          << (names.empty() ? "" : ", ") << names << "); }\n";
    if (op.in_place)
      out << "Tensor& Tensor::" << op.name << "_(" << rest << ") { return map_in_place(point_op(" << op.point
          << "), *this, {" << names << "}); }\n";
  }
  for (const Declared& op : ops) {
    if (op.point < 0) continue;
    const auto p = split_top_level(op.parameters);
    out << "Tensor " << op.name << "(" << join(p, 0, without_default) << ") {\n  const Operand operands[] = {"
        << join(p, 0, name_of) << "};\n  return map(point_op(" << op.point << "), operands);\n}\n";
  }
}

void write_table(std::ostream& out, const std::vector<Declared>& ops) {
  out << "# Ops\n\nGenerated from `src/ops`. Every op runs on the CPU and on CUDA, on any strides, and broadcasts "
         "where it "
         "takes several tensors.\n\n| op | group | dtypes | differentiable | what it is |\n|---|---|---|---|---|\n";
  for (const Declared& op : ops)
    out << "| `" << op.name << "` | " << op.group << " | " << (op.dtypes.empty() ? "all that make sense" : op.dtypes)
        << " | " << (op.differentiable ? "any number of times" : "no") << " | " << op.doc << " |\n";
}

// Leaves an unchanged file alone, so that nothing is compiled again for it.
bool write(const std::string& path, const std::vector<Declared>& ops,
           void (*content)(std::ostream&, const std::vector<Declared>&)) {
  std::ostringstream text, before;
  content(text, ops);
  before << std::ifstream(path).rdbuf();
  if (before.str() == text.str()) return true;
  return bool(std::ofstream(path) << text.str());
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: volta_opgen FOLDER\n";
    return 2;
  }
  const std::string folder = arguments[1];
  const auto ops = all_ops();
  const bool ok =
      write(folder + "/volta/ops.h", ops, write_functions) && write(folder + "/volta/methods.h", ops, write_methods) &&
      write(folder + "/volta/method_bodies.h", ops, write_bodies) && write(folder + "/ops.md", ops, write_table);
  return ok ? 0 : 1;
}
