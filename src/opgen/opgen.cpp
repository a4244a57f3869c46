// Writes the headers that declare every op as a function and as a method, the table of ops for the docs, and the list as JSON.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "math/elementwise_names.h"
#include "math/reducers.h"
#include "ops/autocast_table.h"
#include "ops/functions.h"

namespace {

struct Declared {
  std::string group, result, name;
  std::vector<std::string> parameters;
  std::string doc, dtypes, grad;
  bool method, in_place;
  int point = -1;                                            // index in ElementwiseOps
  int reducer = -1;                                          // index in reducers::Named
  bool written() const { return point < 0 && reducer < 0; }  // by hand, in src/ops
  // The function is written here and casts; what is computed is Plain::name, and that is written by hand.
  bool casts() const { return written() && volta::cast_of(name) != volta::Cast::as_given; }
};
using Ops = std::vector<Declared>;

std::vector<std::string> split_top_level(const std::string& text) {
  std::vector<std::string> parts(text.empty() ? 0 : 1);
  int depth = 0;
  for (char c : text) {
    depth += c == '<' || c == '{' || c == '(';
    depth -= c == '>' || c == '}' || c == ')';
    if (c == ',' && depth == 0) parts.emplace_back();
    else if (c != ' ' || !parts.back().empty()) parts.back() += c;
  }
  return parts;
}

std::string spelled_out(const std::string& parameter) {
  if (parameter == "keepdim") return "bool keepdim = false";
  if (parameter.ends_with("Options")) return "const " + parameter + "& options = {}";
  const size_t space = parameter.find(' ');
  if (space == std::string::npos) return "const Tensor& " + parameter;
  for (const volta::Word& w : volta::words)
    if (parameter.compare(0, space, w.word) == 0) return w.type + parameter.substr(space);
  return parameter;
}

std::string same(const std::string& parameter) { return parameter; }
std::string without_default(const std::string& parameter) { return parameter.substr(0, parameter.find(" =")); }
std::string name_of(const std::string& parameter) {
  const std::string p = without_default(parameter);
  return p.substr(p.find_last_of(" &") + 1);
}

std::string join(const Declared& op, size_t from, std::string (*f)(const std::string&)) {
  std::string s;
  for (size_t i = from; i < op.parameters.size(); ++i) s += (i > from ? ", " : "") + f(op.parameters[i]);
  return s;
}

Ops all_ops() {
  Ops list;
  int index = 0;
  volta::for_each_point_name([&](const volta::PointName& op) {
    auto parameters = split_top_level(op.args);
    const std::string type = parameters.size() == 1 ? "const Tensor& " : "const Operand& ";
    for (std::string& p : parameters) p.insert(0, type);
    list.push_back(
        {"pointwise", "Tensor", op.name, parameters, op.doc, volta::takes_words[int(volta::takes_of(op.domain))],
         volta::grad_words[!op.differentiable || op.truth], op.masks == 0, op.masks == 0 && !op.truth, index++});
  });
  volta::detail::for_each(volta::reducers::Named{}, [&]<class R>(int i) {
    const std::vector<std::string> parameters{"const Tensor& x", "const Axes& dim = {}", "bool keepdim = false"};
    list.push_back({"reduce", "Tensor", R::name, parameters, R::doc,
                    volta::takes_words[int(volta::takes_of(R::elements))],
                    volta::grad_words[!volta::reducers::Differentiable<R>], true, false, -1, i});
  });
  volta::for_each_function([&](const volta::Function& f, const std::string& name, const std::string& doc) {
    auto parameters = split_top_level(f.parameters);
    for (std::string& p : parameters) p = spelled_out(p);
    list.push_back({f.group, f.also.result, name, parameters, doc, volta::takes_words[int(f.takes())],
                    volta::grad_words[int(f.also.grad)], f.as() == volta::As::both, false});
  });
  return list;
}

// In braces a list is a list, even of one number: split(x, {2}) is one piece of 2, not pieces of 2 each. An overload that
// takes a number would be preferred to one that takes Ints.
void write_lists(std::ostream& out, const Ops& ops, bool methods) {
  const auto second_is = [](const Declared& op, const char* type) {
    return op.parameters.size() > 1 && op.parameters[1].starts_with(type);
  };
  for (const Declared& op : ops) {
    const bool number_too = std::any_of(ops.begin(), ops.end(), [&](const Declared& other) {
      return other.name == op.name && second_is(other, "int64_t ");
    });
    if (!number_too || !second_is(op, "const Ints& ")) continue;
    const std::string list = name_of(op.parameters[1]), rest = join(op, 2, same), names = join(op, 2, name_of);
    out << "template <std::integral T>\n[[nodiscard]] " << op.result << " " << op.name << "("
        << (methods ? "" : "const Tensor& x, ") << "std::initializer_list<T> " << list << (rest.empty() ? "" : ", ")
        << rest << ")" << (methods ? " const" : "") << " { return " << op.name << "(" << (methods ? "" : "x, ")
        << "Ints(std::vector<T>(" << list << "))" << (names.empty() ? "" : ", ") << names << "); }\n";
  }
}

// Stride, padding and what follows by position, as F.max_pool2d(x, 3, 2, 1) in PyTorch. A list in braces is the stride
// of each axis (of windows as columns, the dilation), where it would else fill the first options.
struct Positional {
  std::string result, name, front, rest;  // parameters before and after the first number
  std::vector<std::string> options;       // names of all numbers
};
void write_positional(std::ostream& out, const Positional& f) {
  std::string values;
  std::istringstream front(f.front);
  for (std::string p; std::getline(front, p, ',');) values += (values.empty() ? "" : ", ") + p.substr(p.rfind(' ') + 1);
  for (const bool list : {false, true}) {
    const std::string& first = f.options[0];
    out << "template <detail::Whole S>\n[[nodiscard]] " << f.result << " " << f.name << "(" << f.front << ", "
        << (list ? "std::initializer_list<S> " : "S ") << first << f.rest << ") { return " << f.name << "(" << values
        << ", {." << first << " = " << (list ? "PerAxis::list(" + first + ")" : first);
    for (size_t i = 1; i < f.options.size(); ++i) out << ", ." << f.options[i] << " = " << f.options[i];
    out << "}); }\n";
  }
}
void write_positional(std::ostream& out) {
  const std::string window = "const Tensor& x, const PerAxis& kernel_size", padding = ", const PerAxis& padding = 0",
                    power = "const Tensor& x, double norm_type, const PerAxis& kernel_size",
                    places = "const Tensor& x, const Tensor& indices, const PerAxis& kernel_size",
                    columns = "const Tensor& columns, const PerAxis& output_size, const PerAxis& kernel_size",
                    filter = "const Tensor& x, const Tensor& weight, const Tensor& bias";
  const std::string of_max = ", const PerAxis& padding = 0, const PerAxis& dilation = 1",
                    of_conv = ", const ConvPadding& padding = 0, const PerAxis& dilation = 1, Int groups = 1",
                    of_transpose =
                        ", const PerAxis& padding = 0, const PerAxis& output_padding = 0, Int groups = 1, "
                        "const PerAxis& dilation = 1",
                    of_columns = ", const PerAxis& padding = 0, const PerAxis& stride = 1";
  using Names = std::vector<std::string>;
  const Names max = {"stride", "padding", "dilation"}, conv = {"stride", "padding", "dilation", "groups"},
              transpose = {"stride", "padding", "output_padding", "groups", "dilation"},
              unfold = {"dilation", "padding", "stride"};
  for (const std::string d : {"1d", "2d", "3d"}) {
    write_positional(out, {"Tensor", "max_pool" + d, window, of_max, max});
    write_positional(out, {"ValuesIndices", "max_pool" + d + "_with_indices", window, of_max, max});
    write_positional(out, {"Tensor", "avg_pool" + d, window, padding, {"stride", "padding"}});
    write_positional(out, {"Tensor", "lp_pool" + d, power, "", {"stride"}});
    write_positional(out, {"Tensor", "max_unpool" + d, places, padding, {"stride", "padding"}});
    write_positional(out, {"Tensor", "conv" + d, filter, of_conv, conv});
    write_positional(out, {"Tensor", "conv_transpose" + d, filter, of_transpose, transpose});
  }
  write_positional(out, {"Tensor", "im2col", window, of_columns, unfold});
  write_positional(out, {"Tensor", "col2im", columns, of_columns, unfold});
}

// A list in braces is a list of lengths, never a tensor: hence the templates.
void write_lengths(std::ostream& out) {
  out << R"(// Lengths may be tensors of integers, too.
template <std::same_as<Tensor> Lengths>
[[nodiscard]] PackedSequence pack_padded_sequence(const Tensor& x, const Lengths& lengths, bool batch_first = false) {
  return pack_padded_sequence(x, lengths_of(lengths, "pack_padded_sequence"), batch_first);
}
template <std::same_as<Tensor> Lengths>
[[nodiscard]] std::vector<Tensor> unpad_sequence(const Tensor& padded, const Lengths& lengths, bool batch_first = false) {
  return unpad_sequence(padded, lengths_of(lengths, "unpad_sequence"), batch_first);
}
template <std::same_as<Tensor> Lengths>
[[nodiscard]] Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Lengths& input_lengths, const Lengths& target_lengths, const CTCLossOptions& options = {}) {
  return ctc_loss(log_probs, targets, lengths_of(input_lengths, "ctc_loss"), lengths_of(target_lengths, "ctc_loss"), options);
}
)";
}

void write_functions(std::ostream& out, const Ops& ops) {
  out << "// Every op as a function. Generated from src/ops; do not edit.\n#pragma once\n#include <volta/tensor.h>\n";
  for (const char* family :
       {"attention", "conv", "embedding", "loss", "packed_sequence", "pool", "recurrent", "resample"})
    out << "#include <volta/ops/" << family << ".h>\n";
  out << "\nnamespace volta {\n\n";
  for (const Declared& op : ops)
    out << "// " << op.doc << "\n[[nodiscard]] " << op.result << " " << op.name << "(" << join(op, 0, same) << ");\n";
  write_lists(out, ops, false);
  out << "\ntemplate <class... X>\n  requires(sizeof...(X) > 0 && (std::is_convertible_v<X, Tensor> && ...))\n"
         "[[nodiscard]] Tensor einsum(const std::string& equation, const X&... operands) {\n"
         "  return einsum(equation, std::vector<Tensor>{operands...});\n}\n"
         "// Three tensors, for programs that also say using namespace std.\n"
         "[[nodiscard]] inline Tensor clamp(const Tensor& x, const Tensor& min, const Tensor& max) {\n"
         "  return clamp(Operand(x), Operand(min), Operand(max));\n}\n";
  write_positional(out);
  write_lengths(out);
  out << "\n}  // namespace volta\n";
}

void write_plain(std::ostream& out, const Ops& ops) {
  out << "// The ops that Autocast casts for, as they are without it. Generated from src/ops; do not edit.\n#pragma "
         "once\n"
         "#include <volta/ops.h>\n\nnamespace volta {\n\nstruct Plain {\n";
  for (const Declared& op : ops)
    if (op.casts()) out << "  static " << op.result << " " << op.name << "(" << join(op, 0, same) << ");\n";
  out << "};\n\n}  // namespace volta\n";
}

void write_casts(std::ostream& out, const Ops& ops) {
  out << "// The functions that cast first, under Autocast. Generated from src/ops; do not edit.\n";
  static const char* const hows[] = {"as_given", "low", "wide", "widest"};
  for (const Declared& op : ops) {
    if (!op.casts()) continue;
    std::string cast;
    for (const std::string& p : op.parameters) cast += (cast.empty() ? "cast(" : ", cast(") + name_of(p) + ")";
    const std::string parameters = join(op, 0, without_default), names = join(op, 0, name_of);
    // The cast apart: the function itself is a test and a jump.
    out << "[[gnu::cold, gnu::noinline]] static " << op.result << " cast_" << op.name << "(" << parameters
        << ") {\n  const CastScope cast(Cast::" << hows[int(volta::cast_of(op.name))] << ", " << names
        << ");\n  return Plain::" << op.name << "(" << cast << ");\n}\n"
        << op.result << " " << op.name << "(" << parameters << ") {\n  return autocasting() ? cast_" << op.name << "("
        << names << ") : Plain::" << op.name << "(" << names << ");\n}\n";
  }
}

void write_methods(std::ostream& out, const Ops& ops) {
  out << "// Every op as a method of Tensor, included in its definition. Generated from src/ops; do not edit.\n";
  for (const Declared& op : ops) {
    if (op.method) out << "[[nodiscard]] " << op.result << " " << op.name << "(" << join(op, 1, same) << ") const;\n";
    if (op.in_place)
      out << "Tensor& " << op.name << "_(" << join(op, 1, same) << ") &;\n"
          << "Tensor " << op.name << "_(" << join(op, 1, same) << ") && { return std::move(" << op.name << "_("
          << join(op, 1, name_of) << ")); }\n";
  }
  write_lists(out, ops, true);
}

void write_bodies(std::ostream& out, const Ops& ops) {
  out << "// Bodies of the generated methods. Generated from src/ops; do not edit.\n";
  for (const Declared& op : ops) {
    const std::string rest = join(op, 1, without_default), names = join(op, 1, name_of);
    if (op.method)
      out << op.result << " Tensor::" << op.name << "(" << rest << ") const { return volta::" << op.name << "(*this"
          << (names.empty() ? "" : ", ") << names << "); }\n";
    if (op.in_place)
      out << "Tensor& Tensor::" << op.name << "_(" << rest << ") & { return map_in_place(point_op(" << op.point
          << "), *this, {" << names << "}); }\n";
    if (op.point >= 0)
      out << "Tensor " << op.name << "(" << join(op, 0, without_default) << ") {\n  const Operand operands[] = {"
          << join(op, 0, name_of) << "};\n  return detail::map(point_op(" << op.point << "), operands);\n}\n";
    if (op.reducer >= 0)
      out << "Tensor " << op.name << "(" << join(op, 0, without_default) << ") { return reduce_over(reduce_op("
          << op.reducer << "), " << join(op, 0, name_of) << "); }\n";
  }
}

void write_table(std::ostream& out, const Ops& ops) {
  out << "# Ops\n\nGenerated from `src/ops`. Every op runs on the CPU and on CUDA, on any strides, and broadcasts "
         "where it takes several tensors.\n\n"
         "| op | group | dtypes | differentiable | under [Autocast](mixed-precision.md) | what it is |\n"
         "|---|---|---|---|---|---|\n";
  for (const Declared& op : ops)
    out << "| `" << op.name << "` | " << op.group << " | " << op.dtypes << " | " << op.grad << " | "
        << volta::cast_words[int(volta::cast_of(op.name))] << " | " << op.doc << " |\n";
}

std::string type_of(const std::string& parameter) {
  const std::string p = without_default(parameter);
  return p.substr(0, p.find_last_of(" &") + (p[p.find_last_of(" &")] == '&'));
}

// Calls of add() and add_in_place() with every op, for programs that try them all (tests/fuzz).
void write_calls(std::ostream& out, const Ops& ops) {
  out << "// Generated from src/ops; do not edit.\n";
  for (const Declared& op : ops) {
    std::string names;
    for (const std::string& p : op.parameters) {
      if (!names.empty()) names += ' ';
      names += name_of(p);
    }
    out << "add(calls, \"" << op.name << "\", \"" << names << "\", static_cast<" << op.result << " (*)("
        << join(op, 0, type_of) << ")>(&volta::" << op.name << "));\n";
    if (!op.in_place) continue;
    const std::string rest = join(op, 1, without_default);
    out << "add_in_place(calls, \"" << op.name << "_\", \"" << names << "\", +[](Tensor& self"
        << (rest.empty() ? "" : ", ") << rest << ") -> Tensor { return self." << op.name << "_(" << join(op, 1, name_of)
        << "); });\n";
  }
}

std::string quoted(const std::string& text) {
  std::string s = "\"";
  for (char c : text) s += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return s + '"';
}

// The list as JSON, for the generators of other languages' bindings.
void write_list(std::ostream& out, const Ops& ops) {
  out << "[\n";
  for (const Declared& op : ops) {
    out << "{\"name\": " << quoted(op.name) << ", \"group\": " << quoted(op.group)
        << ", \"result\": " << quoted(op.result) << ", \"parameters\": [";
    for (const std::string& p : op.parameters) out << (&p == op.parameters.data() ? "" : ", ") << quoted(p);
    out << "], \"doc\": " << quoted(op.doc) << ", \"method\": " << (op.method ? "true" : "false")
        << ", \"in_place\": " << (op.in_place ? "true" : "false") << "}" << (&op == &ops.back() ? "\n]\n" : ",\n");
  }
}

// Leaves an unchanged file alone, so that nothing is compiled again for it.
bool write(const std::string& path, const Ops& ops, void (*content)(std::ostream&, const Ops&)) {
  std::ostringstream text, before;
  content(text, ops);
  before << std::ifstream(path).rdbuf();
  return before.str() == text.str() || std::ofstream(path) << text.str();
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: volta_opgen FOLDER\n";
    return 2;
  }
  const std::string folder = std::string(arguments[1]) + "/";
  const Ops ops = all_ops();
  const bool ok =
      write(folder + "volta/ops.h", ops, write_functions) && write(folder + "volta/methods.h", ops, write_methods) &&
      write(folder + "volta/method_bodies.h", ops, write_bodies) && write(folder + "volta/plain.h", ops, write_plain) &&
      write(folder + "volta/cast_bodies.h", ops, write_casts) && write(folder + "op_calls.inc", ops, write_calls) &&
      write(folder + "ops.json", ops, write_list) && write(folder + "ops.md", ops, write_table);
  return ok ? 0 : 1;
}
