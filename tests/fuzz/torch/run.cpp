// Runs the chains of ops that fuzz.py wrote, with Volta, and writes what each tensor and gradient came to.
//
//     volta_fuzz_torch CHAINS RESULTS
//
// CHAINS is lines of words:
//     chain N
//     in DTYPE GRAD RANK SIZES… VALUES…
//     op NAME REGISTERS… / INTEGERS… / NUMBERS…
//     end SECOND REGISTERS…                     the loss is made of these; SECOND: differentiate its gradient again
// RESULTS is 8-byte little-endian words: per chain its number, a status (0 fine, 1 an error in an op, 2 in a gradient) and
// how many tensors follow; per tensor its dtype's name (none: no tensor), rank, sizes and elements as doubles or integers. A chain with an error
// has its text instead: its length, and the bytes.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>

#include <volta/volta.h>

namespace {

using namespace volta;
using Tensors = std::vector<Tensor>;

struct Step {
  std::string name;  // or an input
  Tensor input = {};
  std::vector<int64_t> registers = {}, integers = {};
  std::vector<double> numbers = {};
};

struct Arguments {
  const Step& step;
  Tensors& all;
  Tensor& x(size_t i) const { return all.at(size_t(step.registers.at(i))); }
  size_t count() const { return step.registers.size(); }
  int64_t i(size_t k) const { return step.integers.at(k); }
  double d(size_t k) const { return step.numbers.at(k); }
  Shape shape(size_t from = 0) const {
    Shape s;
    for (size_t k = from; k < step.integers.size(); ++k) s.push_back(step.integers[k]);
    return s;
  }
  Tensors list(size_t from = 0) const {
    Tensors t;
    for (size_t k = from; k < count(); ++k) t.push_back(x(k));
    return t;
  }
};
using Op = std::function<Tensors(const Arguments&)>;
using Ops = std::map<std::string, Op>;

void add_pointwise(Ops& ops) {
  using One = Tensor (*)(const Tensor&);
  const std::map<std::string, One> one = {{"neg", neg},         {"abs", abs},
                                          {"tanh", tanh},       {"sin", sin},
                                          {"cos", cos},         {"relu", relu},
                                          {"sigmoid", sigmoid}, {"square", square},
                                          {"exp", exp},         {"sqrt", sqrt},
                                          {"log", log},         {"rsqrt", rsqrt},
                                          {"atan", atan},       {"erf", erf},
                                          {"silu", silu},       {"sign", sign},
                                          {"floor", floor},     {"round", round},
                                          {"expm1", expm1},     {"log1p", log1p},
                                          {"trunc", trunc},     {"logical_not", logical_not},
                                          {"asinh", asinh},     {"softsign", softsign}};
  for (const auto& [name, f] : one) ops[name] = [f = f](const Arguments& a) { return Tensors{f(a.x(0))}; };
  ops["softplus"] = [](const Arguments& a) { return Tensors{softplus(a.x(0))}; };
  ops["gelu"] = [](const Arguments& a) { return Tensors{gelu(a.x(0))}; };
  ops["reciprocal"] = [](const Arguments& a) { return Tensors{reciprocal(a.x(0))}; };
  using Two = Tensor (*)(const Operand&, const Operand&);
  const std::map<std::string, Two> two = {
      {"add", add}, {"sub", sub}, {"mul", mul}, {"div", div},     {"maximum", maximum},         {"minimum", minimum},
      {"lt", lt},   {"ge", ge},   {"eq", eq},   {"atan2", atan2}, {"logical_and", logical_and}, {"hypot", hypot}};
  for (const auto& [name, f] : two) {
    ops[name] = [f = f](const Arguments& a) { return Tensors{f(a.x(0), a.x(1))}; };
    ops[name + "_number"] = [f = f](const Arguments& a) { return Tensors{f(a.x(0), a.d(0))}; };
    ops[name + "_integer"] = [f = f](const Arguments& a) { return Tensors{f(a.x(0), a.i(0))}; };
  }
  ops["pow_number"] = [](const Arguments& a) { return Tensors{pow(a.x(0), a.d(0))}; };
  ops["clamp"] = [](const Arguments& a) { return Tensors{clamp(a.x(0), a.d(0), a.d(1))}; };
  ops["where"] = [](const Arguments& a) { return Tensors{where(a.x(0), a.x(1), a.x(2))}; };
  ops["lerp"] = [](const Arguments& a) { return Tensors{lerp(a.x(0), a.x(1), a.d(0))}; };
  ops["addcmul"] = [](const Arguments& a) { return Tensors{addcmul(a.x(0), a.x(1), a.x(2), a.d(0))}; };
  ops["to_f64"] = [](const Arguments& a) { return Tensors{a.x(0).to(f64)}; };
  ops["to_f32"] = [](const Arguments& a) { return Tensors{a.x(0).to(f32)}; };
  ops["to_i64"] = [](const Arguments& a) { return Tensors{a.x(0).to(i64)}; };
}

void add_reductions(Ops& ops) {
  using Over = Tensor (*)(const Tensor&, const Axes&, bool);
  const std::map<std::string, Over> over = {{"sum", sum},      {"mean", mean}, {"amax", amax},           {"amin", amin},
                                            {"any", any},      {"all", all},   {"logsumexp", logsumexp}, {"prod", prod},
                                            {"nansum", nansum}};
  for (const auto& [name, f] : over)
    ops[name] = [f = f](const Arguments& a) { return Tensors{f(a.x(0), Axes(a.shape(1)), a.i(0) != 0)}; };
  ops["var"] = [](const Arguments& a) {
    return Tensors{var(a.x(0), Axes(a.shape(1)), {.correction = a.d(0), .keepdim = a.i(0) != 0})};
  };
  ops["std"] = [](const Arguments& a) {
    return Tensors{std_dev(a.x(0), Axes(a.shape(1)), {.correction = a.d(0), .keepdim = a.i(0) != 0})};
  };
  ops["norm"] = [](const Arguments& a) { return Tensors{norm(a.x(0), a.d(0), Axes(a.shape(1)), a.i(0) != 0)}; };
  const auto pair = [](const ValuesIndices& r) { return Tensors{r.values, r.indices}; };
  ops["max"] = [=](const Arguments& a) { return pair(max(a.x(0), a.i(0), a.i(1) != 0)); };
  ops["min"] = [=](const Arguments& a) { return pair(min(a.x(0), a.i(0), a.i(1) != 0)); };
  ops["sort"] = [=](const Arguments& a) { return pair(sort(a.x(0), a.i(0), a.i(1) != 0)); };
  ops["topk"] = [=](const Arguments& a) { return Tensors{topk(a.x(0), a.i(1), a.i(0)).values}; };
  ops["kthvalue"] = [=](const Arguments& a) { return Tensors{kthvalue(a.x(0), a.i(1), a.i(0)).values}; };
  ops["median"] = [=](const Arguments& a) { return Tensors{median(a.x(0), a.i(0)).values}; };
  ops["argmax"] = [](const Arguments& a) { return Tensors{argmax(a.x(0), a.i(0))}; };
  ops["cummax"] = [](const Arguments& a) { return Tensors{cummax(a.x(0), a.i(0)).values}; };
  using Along = Tensor (*)(const Tensor&, int64_t);
  const std::map<std::string, Along> along = {{"softmax", softmax},
                                              {"log_softmax", log_softmax},
                                              {"cumsum", cumsum},
                                              {"cumprod", cumprod},
                                              {"logcumsumexp", logcumsumexp}};
  for (const auto& [name, f] : along) ops[name] = [f = f](const Arguments& a) { return Tensors{f(a.x(0), a.i(0))}; };
  ops["quantile"] = [](const Arguments& a) { return Tensors{quantile(a.x(0), a.d(0), a.i(0), a.i(1) != 0)}; };
  ops["diff"] = [](const Arguments& a) { return Tensors{diff(a.x(0), 1, a.i(0))}; };
}

void add_views(Ops& ops) {
  ops["reshape"] = [](const Arguments& a) { return Tensors{a.x(0).reshape(a.shape())}; };
  ops["transpose"] = [](const Arguments& a) { return Tensors{a.x(0).transpose(a.i(0), a.i(1))}; };
  ops["permute"] = [](const Arguments& a) { return Tensors{a.x(0).permute(a.shape())}; };
  ops["expand"] = [](const Arguments& a) { return Tensors{a.x(0).expand(a.shape())}; };
  ops["unsqueeze"] = [](const Arguments& a) { return Tensors{a.x(0).unsqueeze(a.i(0))}; };
  ops["squeeze"] = [](const Arguments& a) { return Tensors{a.x(0).squeeze()}; };
  ops["narrow"] = [](const Arguments& a) { return Tensors{a.x(0).narrow(a.i(0), a.i(1), a.i(2))}; };
  ops["slice"] = [](const Arguments& a) { return Tensors{a.x(0).slice(a.i(0), a.i(1), a.i(2), a.i(3))}; };
  ops["select"] = [](const Arguments& a) { return Tensors{a.x(0).select(a.i(0), a.i(1))}; };
  ops["diagonal"] = [](const Arguments& a) { return Tensors{a.x(0).diagonal(a.i(0), a.i(1), a.i(2))}; };
  ops["unfold"] = [](const Arguments& a) { return Tensors{a.x(0).unfold(a.i(0), a.i(1), a.i(2))}; };
  // A copy in the layout of the input, as PyTorch's is.
  ops["flip"] = [](const Arguments& a) {
    Tensor y = a.x(0).detach().clone();
    return Tensors{y.copy_(a.x(0).flip(a.i(0)))};
  };
  ops["clone"] = [](const Arguments& a) { return Tensors{a.x(0).clone()}; };
  ops["contiguous"] = [](const Arguments& a) { return Tensors{a.x(0).contiguous()}; };
  ops["roll"] = [](const Arguments& a) { return Tensors{a.x(0).roll(a.i(0), a.i(1))}; };
  ops["rot90"] = [](const Arguments& a) { return Tensors{a.x(0).rot90(a.i(0))}; };
  ops["tril"] = [](const Arguments& a) { return Tensors{a.x(0).tril(a.i(0))}; };
  ops["diag_embed"] = [](const Arguments& a) { return Tensors{a.x(0).diag_embed(a.i(0))}; };
  ops["repeat"] = [](const Arguments& a) { return Tensors{a.x(0).repeat(a.shape())}; };
  ops["repeat_interleave"] = [](const Arguments& a) { return Tensors{a.x(0).repeat_interleave(a.i(1), a.i(0))}; };
  ops["pad"] = [](const Arguments& a) { return Tensors{a.x(0).pad({a.i(0), a.i(1)}, {.value = a.d(0)})}; };
  ops["chunk"] = [](const Arguments& a) { return a.x(0).chunk(a.i(0), a.i(1)); };
  ops["tensor_split"] = [](const Arguments& a) { return a.x(0).tensor_split(a.i(0), a.i(1)); };
  ops["unbind"] = [](const Arguments& a) { return a.x(0).unbind(a.i(0)); };
  ops["cat"] = [](const Arguments& a) { return Tensors{cat(a.list(), a.i(0))}; };
  ops["stack"] = [](const Arguments& a) { return Tensors{stack(a.list(), a.i(0))}; };
  ops["vstack"] = [](const Arguments& a) { return Tensors{vstack(a.list())}; };
  ops["hstack"] = [](const Arguments& a) { return Tensors{hstack(a.list())}; };
  ops["matmul"] = [](const Arguments& a) { return Tensors{matmul(a.x(0), a.x(1))}; };
  ops["outer"] = [](const Arguments& a) { return Tensors{outer(a.x(0), a.x(1))}; };
  ops["cdist"] = [](const Arguments& a) { return Tensors{cdist(a.x(0), a.x(1), a.d(0))}; };
}

void add_indices(Ops& ops) {
  const auto row = [](const Arguments& a, size_t from) {
    return tensor(std::vector<int64_t>(a.step.integers.begin() + int64_t(from), a.step.integers.end()));
  };
  ops["index_select"] = [=](const Arguments& a) { return Tensors{a.x(0).index_select(a.i(0), row(a, 1))}; };
  ops["index"] = [=](const Arguments& a) { return Tensors{Tensor(a.x(0)[row(a, 0)])}; };
  ops["take"] = [=](const Arguments& a) { return Tensors{a.x(0).take(row(a, 0))}; };
  ops["gather"] = [](const Arguments& a) { return Tensors{a.x(0).gather(a.i(0), a.x(1))}; };
  ops["scatter"] = [](const Arguments& a) { return Tensors{a.x(0).scatter(a.i(0), a.x(1), a.x(2))}; };
  ops["scatter_add"] = [](const Arguments& a) { return Tensors{a.x(0).scatter_add(a.i(0), a.x(1), a.x(2))}; };
  ops["index_add"] = [=](const Arguments& a) { return Tensors{a.x(0).index_add(a.i(0), row(a, 1), a.x(1))}; };
  ops["index_fill"] = [=](const Arguments& a) { return Tensors{a.x(0).index_fill(a.i(0), row(a, 1), a.d(0))}; };
  ops["masked_fill"] = [](const Arguments& a) { return Tensors{a.x(0).masked_fill(a.x(1), a.d(0))}; };
  ops["masked_select"] = [](const Arguments& a) { return Tensors{a.x(0).masked_select(a.x(1))}; };
  ops["nonzero"] = [](const Arguments& a) { return Tensors{a.x(0).nonzero()}; };
}

void add_in_place(Ops& ops) {
  const auto row = [](const Arguments& a, size_t from) {
    return tensor(std::vector<int64_t>(a.step.integers.begin() + int64_t(from), a.step.integers.end()));
  };
  ops["add_"] = [](const Arguments& a) { return a.x(0).add_(a.x(1)), Tensors{}; };
  ops["mul_"] = [](const Arguments& a) { return a.x(0).mul_(a.x(1)), Tensors{}; };
  ops["add_number_"] = [](const Arguments& a) { return a.x(0).add_(a.d(0)), Tensors{}; };
  ops["mul_number_"] = [](const Arguments& a) { return a.x(0).mul_(a.d(0)), Tensors{}; };
  ops["copy_"] = [](const Arguments& a) { return a.x(0).copy_(a.x(1)), Tensors{}; };
  ops["fill_"] = [](const Arguments& a) { return a.x(0).fill_(a.d(0)), Tensors{}; };
  ops["zero_"] = [](const Arguments& a) { return a.x(0).zero_(), Tensors{}; };
  ops["relu_"] = [](const Arguments& a) { return a.x(0).relu_(), Tensors{}; };
  ops["tanh_"] = [](const Arguments& a) { return a.x(0).tanh_(), Tensors{}; };
  ops["square_"] = [](const Arguments& a) { return a.x(0).square_(), Tensors{}; };
  ops["masked_fill_"] = [](const Arguments& a) { return a.x(0).masked_fill_(a.x(1), a.d(0)), Tensors{}; };
  ops["index_add_"] = [=](const Arguments& a) { return a.x(0).index_add_(a.i(0), row(a, 1), a.x(1)), Tensors{}; };
  ops["index_copy_"] = [=](const Arguments& a) { return a.x(0).index_copy_(a.i(0), row(a, 1), a.x(1)), Tensors{}; };
  ops["index_fill_"] = [=](const Arguments& a) { return a.x(0).index_fill_(a.i(0), row(a, 1), a.d(0)), Tensors{}; };
  ops["index_put_"] = [=](const Arguments& a) {
    return a.x(0).index_put_({row(a, 1)}, a.x(1), a.i(0) != 0), Tensors{};
  };
  ops["scatter_add_"] = [](const Arguments& a) { return a.x(0).scatter_add_(a.i(0), a.x(1), a.x(2)), Tensors{}; };
  ops["set_index"] = [](const Arguments& a) {
    a.x(0)[a.i(0)] = a.x(1);
    return Tensors{};
  };
  ops["set_slice"] = [](const Arguments& a) {
    a.x(0)[slice(a.i(0), a.i(1), a.i(2))] = a.d(0);
    return Tensors{};
  };
  ops["set_mask"] = [](const Arguments& a) {
    a.x(0)[a.x(1)] = a.d(0);
    return Tensors{};
  };
}

const Ops& ops() {
  static const Ops table = [] {
    Ops all;
    add_pointwise(all);
    add_reductions(all);
    add_views(all);
    add_indices(all);
    add_in_place(all);
    return all;
  }();
  return table;
}

DType dtype_named(const std::string& word) {
  for (int i = 0; i < dtype_count; ++i)
    if (volta::name(DType(i)) == word) return DType(i);
  throw std::runtime_error("unknown dtype " + word);
}

struct Chain {
  int64_t number = 0;
  std::vector<Step> steps;
  std::vector<int64_t> roots;
  bool second = false;
};

Tensor read_input(std::istringstream& words) {
  std::string dtype, value;
  int grad = 0, rank = 0;
  words >> dtype >> grad >> rank;
  Shape shape;
  for (int k = 0; k < rank; ++k) {
    int64_t n = 0;
    words >> n;
    shape.push_back(n);
  }
  const DType type = dtype_named(dtype);
  std::vector<double> numbers;
  while (words >> value) numbers.push_back(std::strtod(value.c_str(), nullptr));
  Tensor x = tensor(numbers, shape).to(type);
  if (grad) x.requires_grad_();
  return x;
}

bool read_chain(std::istream& in, Chain& chain) {
  chain = {};
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "chain") words >> chain.number;
    else if (word == "in") chain.steps.push_back({.name = "in", .input = read_input(words)});
    else if (word == "op") {
      Step s;
      words >> s.name;
      int part = 0;
      while (words >> word) {
        if (word == "/") ++part;
        else if (part == 0) s.registers.push_back(std::stoll(word));
        else if (part == 1) s.integers.push_back(std::stoll(word));
        else s.numbers.push_back(std::strtod(word.c_str(), nullptr));
      }
      chain.steps.push_back(std::move(s));
    } else if (word == "end") {
      words >> chain.second;
      for (int64_t r; words >> r;) chain.roots.push_back(r);
      return true;
    }
  }
  return false;
}

void put(std::ostream& out, int64_t word) { out.write(reinterpret_cast<const char*>(&word), 8); }

void put(std::ostream& out, const Tensor& x) {
  int64_t dtype = 0;
  if (x.defined()) std::memcpy(&dtype, name(x.dtype()).data(), name(x.dtype()).size());
  put(out, dtype);
  if (!x.defined()) return;
  put(out, x.dim());
  for (int64_t n : x.shape()) put(out, n);
  if (is_floating(x.dtype()))
    for (double v : x.detach().to(f64).to_vector<double>()) out.write(reinterpret_cast<const char*>(&v), 8);
  else
    for (int64_t v : x.to(i64).to_vector<int64_t>()) put(out, v);
}

// The loss: half the square and the element itself, of every root that has a graph.
Tensor loss_of(const Chain& chain, const Tensors& registers) {
  Tensor loss;
  for (int64_t r : chain.roots) {
    const Tensor y = registers.at(size_t(r)).to(f64), part = (y * y * 0.5 + y).sum();
    loss = loss.defined() ? loss + part : part;
  }
  return loss;
}

void run(const Chain& chain, std::ostream& out) {
  int64_t status = 1;
  try {
    Tensors registers, leaves;
    for (const Step& step : chain.steps) {
      if (!step.input.defined()) {
        for (Tensor& y : ops().at(step.name)({step, registers})) registers.push_back(std::move(y));
        continue;
      }
      registers.push_back(step.input);
      if (step.input.requires_grad()) leaves.push_back(step.input);
    }
    status = 2;
    Tensors results = registers;
    const Tensor loss = loss_of(chain, registers);
    if (loss.defined() && !leaves.empty()) {
      const Tensors first = grad(std::vector{loss}, leaves, {.create_graph = chain.second, .allow_unused = true});
      results.insert(results.end(), first.begin(), first.end());
      Tensor sum;
      for (const Tensor& g : first)
        if (g.defined() && g.requires_grad()) sum = sum.defined() ? sum + (g * g).sum().to(f64) : (g * g).sum().to(f64);
      if (chain.second) {
        const Tensors again =
            sum.defined() ? grad(std::vector{sum}, leaves, {.allow_unused = true}) : Tensors(leaves.size());
        results.insert(results.end(), again.begin(), again.end());
      }
    }
    put(out, chain.number), put(out, 0), put(out, int64_t(results.size()));
    for (const Tensor& x : results) put(out, x);
  } catch (const std::exception& e) {
    const std::string text = e.what();
    put(out, chain.number), put(out, status), put(out, int64_t(text.size()));
    out.write(text.data(), std::streamsize(text.size()));
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::cerr << "usage: volta_fuzz_torch CHAINS RESULTS\n";
    return 2;
  }
  set_num_threads(1);
  std::ifstream in(arguments[1]);
  std::ofstream out(arguments[2], std::ios::binary);
  for (Chain chain; read_chain(in, chain);) run(chain, out);
  return out.good() ? 0 : 1;
}
