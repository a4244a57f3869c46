// The rules of a StateMap. Each works on entries, whose tensors are made only when the map is applied.
#include <volta/io/state_map.h>

#include <algorithm>
#include <map>
#include <set>

#include <volta/grad_mode.h>
#include <volta/ops.h>

#include "core/check.h"
#include "io/glob.h"

namespace volta {
namespace {

const char* const op = "StateMap";

// A tensor on its way: where it came from, what it is called now, and what has been done.
struct Entry {
  std::string from = {}, name = {}, what = {};
  Shape shape = {};
  DType dtype = f32;
  Tensor value = {};  // undefined in a plan
};

struct Work {
  std::vector<Entry> entries;
  std::vector<StatePlan::Line> dropped;
  bool dry = false;

  void drop(const Entry& e, const char* rule) {
    dropped.push_back({e.from, "", e.what.empty() ? rule : e.what + ", " + rule, e.shape, e.dtype});
  }
};

void note(Entry& e, const char* rule) { e.what += (e.what.empty() ? "" : ", ") + std::string(rule); }

void check_pattern(const std::string& pattern, const std::string& to) {
  require(io::count_stars(pattern) == io::count_stars(to), ErrorKind::argument, op, "'", pattern, "' has ",
          io::count_stars(pattern), " stars, '", to, "' has ", io::count_stars(to));
}

void transpose_entry(Entry& e, const char* rule) {
  const int rank = e.shape.size();
  require(rank >= 2, ErrorKind::shape, op, rule, ": tensor '", e.name, "' of shape ", e.shape, " is not a matrix");
  std::swap(e.shape[rank - 2], e.shape[rank - 1]);
  if (e.value.defined()) e.value = e.value.transpose(-2, -1);
  note(e, "transpose");
}

}  // namespace

struct StateMap::Rule {
  std::string text;                // as the user wrote it
  std::function<bool(Work&)> run;  // whether it found something to do
};

StateMap StateMap::with(std::shared_ptr<const Rule> rule) const {
  StateMap next = *this;
  next.rules_.push_back(std::move(rule));
  return next;
}

namespace {

using RulePointer = std::shared_ptr<const StateMap::Rule>;

// A rule that looks at each tensor by itself; f says whether it applied.
template <class F> RulePointer each(std::string text, F f) {
  return std::make_shared<StateMap::Rule>(StateMap::Rule{std::move(text), [f](Work& work) {
                                                           bool any = false;
                                                           for (Entry& e : work.entries) any |= f(e);
                                                           return any;
                                                         }});
}
RulePointer keeping(std::string text, const char* rule, std::string pattern, bool matching) {
  const auto run = [rule, matching, pattern = std::move(pattern)](Work& work) {
    bool any = false;
    std::vector<Entry> kept;
    for (Entry& e : work.entries) {
      const bool matches = io::match(pattern, e.name).has_value();
      any |= matches;
      if (matches == matching) kept.push_back(std::move(e));
      else work.drop(e, rule);
    }
    work.entries = std::move(kept);
    return any;
  };
  return std::make_shared<StateMap::Rule>(StateMap::Rule{std::move(text), run});
}
std::string quoted(const std::string& a) { return "(\"" + a + "\")"; }
std::string quoted(const std::string& a, const std::string& b) { return "(\"" + a + "\", \"" + b + "\")"; }

}  // namespace

StateMap StateMap::rename(const std::string& from, const std::string& to) const {
  return with(each("rename" + quoted(from, to), [=](Entry& e) {
    if (e.name != from) return false;
    e.name = to;
    note(e, "rename");
    return true;
  }));
}

StateMap StateMap::rename_pattern(const std::string& pattern, const std::string& to) const {
  check_pattern(pattern, to);
  return with(each("rename_pattern" + quoted(pattern, to), [=](Entry& e) {
    const auto texts = io::match(pattern, e.name);
    if (!texts) return false;
    e.name = io::filled(to, *texts);
    note(e, "rename");
    return true;
  }));
}

StateMap StateMap::rename_prefix(const std::string& from, const std::string& to) const {
  return with(each("rename_prefix" + quoted(from, to), [=](Entry& e) {
    if (!e.name.starts_with(from)) return false;
    e.name = to + e.name.substr(from.size());
    note(e, "rename");
    return true;
  }));
}
StateMap StateMap::strip_prefix(const std::string& prefix) const {
  return with(each("strip_prefix" + quoted(prefix), [=](Entry& e) {
    if (!e.name.starts_with(prefix)) return false;
    e.name = e.name.substr(prefix.size());
    note(e, "strip_prefix");
    return true;
  }));
}
StateMap StateMap::add_prefix(const std::string& prefix) const {
  return with(each("add_prefix" + quoted(prefix), [=](Entry& e) {
    e.name = prefix + e.name;
    note(e, "add_prefix");
    return true;
  }));
}

StateMap StateMap::transpose(const std::string& name) const {
  return with(each("transpose" + quoted(name), [=](Entry& e) {
    if (e.name != name) return false;
    transpose_entry(e, "transpose");
    return true;
  }));
}
StateMap StateMap::transpose_pattern(const std::string& pattern) const {
  return with(each("transpose_pattern" + quoted(pattern), [=](Entry& e) {
    if (!io::match(pattern, e.name)) return false;
    transpose_entry(e, "transpose_pattern");
    return true;
  }));
}

StateMap StateMap::select(const std::string& pattern) const {
  return with(keeping("select" + quoted(pattern), "not selected", pattern, true));
}
StateMap StateMap::exclude(const std::string& pattern) const {
  return with(keeping("exclude" + quoted(pattern), "excluded", pattern, false));
}

StateMap StateMap::cast(DType dtype, const std::string& pattern) const {
  require(is_floating(dtype), ErrorKind::dtype, op, "cast: ", dtype, " is not a floating dtype");
  return with(each("cast(" + std::string(name(dtype)) + ", \"" + pattern + "\")", [=](Entry& e) {
    if (!is_floating(e.dtype) || !io::match(pattern, e.name)) return false;
    e.dtype = dtype;
    if (e.value.defined()) e.value = e.value.to(dtype);
    note(e, "cast");
    return true;
  }));
}

StateMap StateMap::split(const std::string& pattern, int64_t dim, const std::vector<std::string>& names) const {
  require(!names.empty(), ErrorKind::argument, op, "split: there are no names");
  for (const std::string& name : names) check_pattern(pattern, name);
  const auto run = [=](Work& work) {
    std::vector<Entry> results;
    bool any = false;
    for (Entry& e : work.entries) {
      const auto texts = io::match(pattern, e.name);
      if (!texts) {
        results.push_back(std::move(e));
        continue;
      }
      any = true;
      const auto parts = int64_t(names.size());
      const int axis = normalize_axis(dim, e.shape.size(), e.shape, op);
      require(!e.shape.empty() && e.shape[axis] % parts == 0, ErrorKind::shape, op, "split: axis ", axis,
              " of tensor '", e.name, "' of shape ", e.shape, " does not divide into ", parts, " parts");
      const int64_t size = e.shape[axis] / parts;
      for (int64_t i = 0; i < parts; ++i) {
        Entry part = e;
        part.name = io::filled(names[size_t(i)], *texts);
        part.shape[axis] = size;
        if (e.value.defined()) part.value = e.value.slice(axis, i * size, (i + 1) * size);
        note(part, "split");
        results.push_back(std::move(part));
      }
    }
    work.entries = std::move(results);
    return any;
  };
  return with(std::make_shared<Rule>(Rule{"split" + quoted(pattern), run}));
}

namespace {

// The parts of one merged tensor, by the place of their pattern; its name is known when one has been seen.
struct Parts {
  std::vector<std::optional<size_t>> entries;  // by pattern: which entry
};

Entry merged(const std::vector<Entry>& all, const Parts& parts, const std::vector<std::string>& patterns, int64_t dim,
             const std::string& name) {
  std::vector<Tensor> values;
  Entry result;
  int axis = 0;
  for (size_t i = 0; i < parts.entries.size(); ++i) {
    require(parts.entries[i].has_value(), ErrorKind::argument, op, "merge: for '", name, "' the part '", patterns[i],
            "' is missing");
    const Entry& e = all[*parts.entries[i]];
    if (i == 0) {
      result = e;
      axis = normalize_axis(dim, e.shape.size(), e.shape, op);
      require(!e.shape.empty(), ErrorKind::shape, op, "merge: tensor '", e.name, "' has no axes");
    } else {
      Shape same = e.shape;
      if (same.size() == result.shape.size()) same[axis] = result.shape[axis];
      require(same == result.shape && e.dtype == result.dtype, ErrorKind::shape, op, "merge: tensor '", e.name,
              "' of shape ", e.shape, " and ", e.dtype, " does not go with shape ", result.shape, " and ",
              result.dtype);
      result.shape[axis] += e.shape[axis];
      result.from += " + " + e.from;
    }
    values.push_back(e.value);
  }
  if (result.value.defined()) result.value = cat(values, axis);
  result.name = name;
  note(result, "merge");
  return result;
}

}  // namespace

StateMap StateMap::merge(const std::vector<std::string>& patterns, int64_t dim, const std::string& name) const {
  require(!patterns.empty(), ErrorKind::argument, op, "merge: there are no names");
  for (const std::string& pattern : patterns) check_pattern(pattern, name);
  const auto run = [=](Work& work) {
    std::map<std::string, Parts> groups;
    std::vector<std::optional<std::string>> group_of(work.entries.size());
    for (size_t i = 0; i < work.entries.size(); ++i)
      for (size_t p = 0; p < patterns.size() && !group_of[i]; ++p)
        if (const auto texts = io::match(patterns[p], work.entries[i].name)) {
          group_of[i] = io::filled(name, *texts);
          Parts& parts = groups[*group_of[i]];
          parts.entries.resize(patterns.size());
          if (const auto& taken = parts.entries[p])
            throw_error(ErrorKind::argument, op, "merge: '", work.entries[*taken].name, "' and '", work.entries[i].name,
                        "' are both the part '", patterns[p], "' of '", *group_of[i], "'");
          parts.entries[p] = i;
        }
    std::vector<Entry> results;
    std::set<std::string> done;
    for (size_t i = 0; i < work.entries.size(); ++i) {
      if (!group_of[i]) results.push_back(work.entries[i]);
      else if (done.insert(*group_of[i]).second)
        results.push_back(merged(work.entries, groups.at(*group_of[i]), patterns, dim, *group_of[i]));
    }
    work.entries = std::move(results);
    return !groups.empty();
  };
  return with(std::make_shared<Rule>(Rule{"merge" + quoted(patterns[0], name), run}));
}

namespace {

// A plan gives the function tensors of the right shapes whose values are not there: one element, repeated.
StateDict stand_ins(const std::vector<Entry>& entries, bool dry) {
  StateDict state;
  for (const Entry& e : entries) {
    require(!state.contains(e.name), ErrorKind::argument, op, "two tensors would be called '", e.name, "'");
    state.add(e.name, dry ? zeros({}, {.dtype = e.dtype, .device = Device()}).expand(e.shape) : e.value);
  }
  return state;
}

}  // namespace

StateMap StateMap::custom(Custom function, const std::string& description) const {
  require_function(function, op);
  const auto run = [function = std::move(function), description](Work& work) {
    const StateDict before = stand_ins(work.entries, work.dry), after = function(before);
    std::map<std::string, const Entry*> known;
    for (const Entry& e : work.entries) known[e.name] = &e;
    std::vector<Entry> results;
    for (const auto& [name, x] : after) {
      x.checked(op);
      const auto found = known.find(name);
      Entry e = found == known.end() ? Entry{.from = description, .name = name} : *found->second;
      const bool same = found != known.end() && x.impl_pointer() == before.at(name).impl_pointer();
      if (!same) note(e, description.c_str());
      e.shape = x.shape();
      e.dtype = x.dtype();
      e.value = work.dry ? Tensor() : x;
      results.push_back(std::move(e));
    }
    for (const Entry& e : work.entries)
      if (!after.contains(e.name)) work.drop(e, description.c_str());
    work.entries = std::move(results);
    return true;
  };
  return with(std::make_shared<Rule>(Rule{description, run}));
}

namespace {

struct LayerParts {
  std::string prefix;
  std::vector<size_t> entries;
};

std::string prefix_of(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot + 1);
}

// Numbers within names count as numbers: "2." comes before "10.".
bool natural_less(const std::string& a, const std::string& b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      size_t m = i, n = j;
      while (m < a.size() && digit(a[m])) ++m;
      while (n < b.size() && digit(b[n])) ++n;
      const std::string x = a.substr(i, m - i), y = b.substr(j, n - j);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      i = m, j = n;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

template <class Names> std::vector<LayerParts> layers_of(const Names& names) {
  std::vector<LayerParts> layers;
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto [place, fresh] = places.emplace(prefix_of(names[i]), layers.size());
    if (fresh) layers.push_back({place->first, {}});
    layers[place->second].entries.push_back(i);
  }
  const bool numbered = std::all_of(layers.begin(), layers.end(), [](const LayerParts& l) {
    return !l.prefix.empty() && l.prefix[0] >= '0' && l.prefix[0] <= '9';
  });
  if (numbered)
    std::sort(layers.begin(), layers.end(),
              [](const auto& a, const auto& b) { return natural_less(a.prefix, b.prefix); });
  return layers;
}

void match_by_order(std::vector<Entry>& entries, const std::vector<std::pair<std::string, Shape>>& wanted) {
  std::vector<std::string> from, to;
  for (const Entry& e : entries) from.push_back(e.name);
  for (const auto& [name, shape] : wanted) to.push_back(name);
  const std::vector<LayerParts> theirs = layers_of(from), ours = layers_of(to);
  require(theirs.size() == ours.size(), ErrorKind::argument, op, "by_order: the state has ", theirs.size(),
          " layers with tensors, the model ", ours.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    std::map<std::string, size_t> parts;
    for (const size_t n : ours[i].entries) parts[to[n].substr(ours[i].prefix.size())] = n;
    for (const size_t n : theirs[i].entries) {
      const auto found = parts.find(from[n].substr(theirs[i].prefix.size()));
      require(found != parts.end() && wanted[found->second].second == entries[n].shape, ErrorKind::shape, op,
              "by_order: '", from[n], "' of shape ", entries[n].shape, " does not fit layer '", ours[i].prefix,
              "' of the model, the ", i + 1, ". with tensors",
              found == parts.end() ? "" : ", whose shape is " + wanted[found->second].second.str());
      entries[n].name = to[found->second];
      note(entries[n], "by_order");
    }
  }
}

}  // namespace

StateMap StateMap::by_order(const ModelView& model) const {
  std::vector<std::pair<std::string, Shape>> wanted;
  for (const auto& [name, x] : volta::state_dict(model)) wanted.emplace_back(name, x.shape());
  return with(std::make_shared<Rule>(Rule{"by_order", [wanted](Work& work) {
                                            match_by_order(work.entries, wanted);
                                            return !work.entries.empty();
                                          }}));
}

StateMap StateMap::then(const StateMap& next) const {
  StateMap both = *this;
  both.rules_.insert(both.rules_.end(), next.rules_.begin(), next.rules_.end());
  return both;
}

namespace {

void require_distinct(const std::vector<Entry>& entries) {
  std::map<std::string, const Entry*> seen;
  for (const Entry& e : entries) {
    require(!e.name.empty() || e.from.empty(), ErrorKind::argument, op, "'", e.from, "' would have no name left");
    const auto [place, fresh] = seen.emplace(e.name, &e);
    require(fresh, ErrorKind::argument, op, "'", place->second->from, "' and '", e.from, "' would both be called '",
            e.name, "'");
  }
}

Work begun(const StateDict& state, bool dry) {
  Work work{.entries = {}, .dropped = {}, .dry = dry};
  for (const auto& [name, x] : state)
    work.entries.push_back({name, name, "", x.checked(op).shape(), x.dtype(), dry ? Tensor() : x.detach()});
  return work;
}

}  // namespace

StatePlan StateMap::plan(const StateDict& state) const {
  Work work = begun(state, true);
  StatePlan plan;
  for (const auto& rule : rules_)
    if (!rule->run(work)) plan.unmatched_rules.push_back(rule->text);
  require_distinct(work.entries);
  for (const Entry& e : work.entries) {
    if (e.what.empty()) plan.unmatched_keys.push_back(e.from);
    plan.lines.push_back({e.from, e.name, e.what.empty() ? "kept" : e.what, e.shape, e.dtype});
  }
  plan.lines.insert(plan.lines.end(), work.dropped.begin(), work.dropped.end());
  return plan;
}

StateDict StateMap::apply(const StateDict& state) const {
  const NoGrad off;
  Work work = begun(state, false);
  for (const auto& rule : rules_) rule->run(work);
  require_distinct(work.entries);
  StateDict result;
  for (const Entry& e : work.entries) result.add(e.name, e.value);
  return result;
}

std::string StatePlan::str() const {
  size_t width = 0;
  for (const Line& line : lines) width = std::max(width, line.from.size());
  std::string text;
  for (const Line& line : lines) {
    text += line.from + std::string(width - line.from.size(), ' ') + " -> ";
    text += line.to.empty() ? "(left out)" : line.to + " " + line.shape.str() + " " + std::string(name(line.dtype));
    text += "  (" + line.what + ")\n";
  }
  for (const std::string& rule : unmatched_rules) text += "rule without effect: " + rule + "\n";
  for (const std::string& key : unmatched_keys) text += "no rule for: " + key + "\n";
  return text;
}

}  // namespace volta
