// What volta.nn and volta.optim need of the library: parameters' values, optimizers and schedules.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <volta/nn.h>
#include <volta/optim.h>

#include "callback.h"
#include "nn_objects.h"

namespace volta::python {
namespace {

struct Values : nn::Owned {
  explicit Values(const Tensor& x) : Owned(x) {}
};

template <class T> std::optional<T> entry(const nb::dict& d, const char* name) {
  if (!d.contains(name) || nb::object(d[name]).is_none()) return {};
  return nb::cast<T>(d[name]);
}

optim::Group group_from(const nb::dict& d) {
  static constexpr std::string_view known[] = {"params", "lr", "weight_decay", "momentum", "eps", "betas", "adamw"};
  for (const auto& [key, value] : d)
    if (std::find(std::begin(known), std::end(known), nb::cast<std::string>(key)) == std::end(known))
      raise(PyExc_TypeError, "a group of parameters has no setting '" + nb::cast<std::string>(key) + "'");
  optim::Group group;
  group.params = nb::cast<std::vector<Tensor>>(d["params"]);
  group.lr = entry<double>(d, "lr"), group.weight_decay = entry<double>(d, "weight_decay");
  group.momentum = entry<double>(d, "momentum"), group.eps = entry<double>(d, "eps");
  group.betas = entry<optim::Betas>(d, "betas");
  group.adamw = entry<bool>(d, "adamw").value_or(false);
  return group;
}

nb::dict to_python(const optim::StateDict& saved) {
  nb::dict state;
  for (const auto& [number, slots] : saved.state) {
    nb::dict of;
    for (const auto& [name, x] : slots) of[name.c_str()] = nb::cast(x);
    state[nb::int_(number)] = of;
  }
  nb::list groups;
  for (const auto& group : saved.param_groups) {
    nb::dict of;
    for (const auto& [name, list] : group.options)
      of[name.c_str()] = list.size() == 1 ? nb::cast(list[0]) : nb::object(nb::tuple(nb::cast(list)));
    of["params"] = nb::cast(group.params);
    groups.append(of);
  }
  nb::dict out;
  out["state"] = state, out["param_groups"] = groups;
  return out;
}
optim::StateDict from_python(const nb::dict& given) {
  optim::StateDict saved;
  for (const auto& [number, slots] : nb::cast<nb::dict>(given["state"]))
    saved.state[nb::cast<int64_t>(number)] = nb::cast<std::map<std::string, Tensor>>(slots);
  for (const nb::handle item : nb::cast<nb::list>(given["param_groups"])) {
    optim::StateDict::GroupState group;
    for (const auto& [key, value] : nb::cast<nb::dict>(item)) {
      const auto name = nb::cast<std::string>(key);
      if (name == "params") group.params = nb::cast<std::vector<int64_t>>(value);
      else if (nb::isinstance<nb::sequence>(value)) group.options[name] = nb::cast<std::vector<double>>(value);
      else group.options[name] = {scalar_from(value.ptr()).as<double>()};
    }
    saved.param_groups.push_back(std::move(group));
  }
  return saved;
}

// Schedules that Python owns, inside another.
using Schedules = std::vector<optim::Scheduler*>;
std::vector<optim::AnyScheduler> inner(const Schedules& schedules) {
  std::vector<optim::AnyScheduler> list;
  for (optim::Scheduler* s : schedules)
    list.emplace_back(std::shared_ptr<optim::Scheduler>(std::shared_ptr<void>(), s));
  return list;
}

template <class Of> std::function<double(Of)> number_of(nb::handle callable) {
  return [call = Callback(callable)](Of x) {
    const nb::gil_scoped_acquire locked;
    return nb::cast<double>(nb::float_(call(nb::cast(x))));
  };
}

void define_combined_schedules(nb::module_& m) {
  using Made = std::unique_ptr<optim::Scheduler>;
  m.def("_lambda_lr", [](optim::Optimizer& o, const std::vector<nb::callable>& functions) -> Made {
    std::vector<optim::LambdaLR::Factor> factors;
    for (const nb::callable& f : functions) factors.push_back(number_of<int64_t>(f));
    return std::make_unique<optim::LambdaLR>(o, std::move(factors));
  });
  m.def(
      "_warmup_lr",
      [](optim::Optimizer& o, int64_t steps, double start_factor, optim::Scheduler* then) -> Made {
        std::optional<optim::AnyScheduler> after;
        if (then) after = inner({then})[0];
        return std::make_unique<optim::WarmupLR>(o, optim::WarmupLROptions{steps, start_factor}, std::move(after));
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
  m.def("_sequential_lr", [](optim::Optimizer& o, const Schedules& list, std::vector<int64_t> milestones) -> Made {
    return std::make_unique<optim::SequentialLR>(o, inner(list), std::move(milestones));
  });
  m.def("_chained_lr", [](optim::Optimizer& o, const Schedules& list) -> Made {
    return std::make_unique<optim::ChainedScheduler>(o, inner(list));
  });
}

optim::ParamGroup& group_at(optim::Optimizer& o, size_t i) { return o.param_groups().at(i); }

nb::dict settings_of(const optim::ParamGroup& g) {
  nb::dict d;
  d["lr"] = g.lr, d["weight_decay"] = g.weight_decay, d["momentum"] = g.momentum, d["eps"] = g.eps;
  d["betas"] = nb::make_tuple(g.betas.first, g.betas.second);
  d["initial_lr"] = nb::cast(g.initial_lr);
  return d;
}
void change_setting(optim::ParamGroup& g, const std::string& name, nb::handle value) {
  if (name == "lr") g.lr = nb::cast<double>(value);
  else if (name == "weight_decay") g.weight_decay = nb::cast<double>(value);
  else if (name == "momentum") g.momentum = nb::cast<double>(value);
  else if (name == "eps") g.eps = nb::cast<double>(value);
  else if (name == "betas") g.betas = nb::cast<optim::Betas>(value);
  else if (name == "initial_lr") g.initial_lr = nb::cast<std::optional<double>>(value);
  else raise(PyExc_KeyError, "a group of parameters has no setting '" + name + "'");
}

}  // namespace

template <> optim::Params Arguments::get<optim::Params>(int i) {
  std::vector<optim::Group> groups;
  std::vector<Tensor> alone;
  for (const nb::handle item : nb::handle(values_[i])) {
    if (nb::isinstance<nb::dict>(item)) groups.push_back(group_from(nb::cast<nb::dict>(item)));
    else if (const Tensor* x = tensor_in(item.ptr())) alone.push_back(*x);
    else refuse(i, "a list of Tensors or of dicts");
  }
  optim::Params params(std::move(alone));
  if (!groups.empty()) params.groups = std::move(groups);
  return params;
}
template <> optim::Optimizer* Arguments::get<optim::Optimizer*>(int i) {
  optim::Optimizer* o = nullptr;
  if (!nb::try_cast<optim::Optimizer*>(nb::handle(values_[i]), o) || !o) refuse(i, "an optimizer");
  return o;
}
template <> std::vector<double> Arguments::get<std::vector<double>>(int i) { return get<Numbers>(i).list(); }
template <> std::array<double, 3> Arguments::get<std::array<double, 3>>(int i) {
  const Numbers list = get<Numbers>(i);
  if (list.size() != 3) refuse(i, "three numbers");
  return {list[0], list[1], list[2]};
}
using AdafactorEps = std::pair<std::optional<double>, double>;
template <> AdafactorEps Arguments::get<AdafactorEps>(int i) { return nb::cast<AdafactorEps>(nb::handle(values_[i])); }
template <> std::function<double(double)> Arguments::get<std::function<double(double)>>(int i) {
  if (!PyCallable_Check(values_[i])) refuse(i, "callable");
  return number_of<double>(values_[i]);
}

PyObject* wrap(std::unique_ptr<optim::Optimizer> o) { return nb::cast(std::move(o)).release().ptr(); }
PyObject* wrap(std::unique_ptr<optim::Scheduler> o) { return nb::cast(std::move(o)).release().ptr(); }
PyObject* wrap(std::unique_ptr<optim::ReduceLROnPlateau> o) { return nb::cast(std::move(o)).release().ptr(); }

namespace {
void define_grad_scaler(nb::module_& m) {
  nb::class_<GradScaler>(m, "_GradScaler")
      .def("__init__",
           [](GradScaler* at, double init_scale, double growth_factor, double backoff_factor, int64_t growth_interval,
              bool enabled) {
             new (at) GradScaler({init_scale, growth_factor, backoff_factor, growth_interval, enabled});
           })
      .def("scale", [](GradScaler& s, const Tensor& loss) { return s.scale(loss); })
      .def("unscale_", &GradScaler::unscale_)
      .def("step",
           [](GradScaler& s, optim::Optimizer& o) {
             const Unlocked unlocked;
             s.step(o);
           })
      .def(
          "update", [](GradScaler& s, std::optional<double> scale) { scale ? s.update(*scale) : s.update(); },
          nb::arg().none())
      .def("get_scale", &GradScaler::get_scale)
      .def("get_growth_factor", &GradScaler::get_growth_factor)
      .def("get_backoff_factor", &GradScaler::get_backoff_factor)
      .def("get_growth_interval", &GradScaler::get_growth_interval)
      .def("set_growth_factor", &GradScaler::set_growth_factor)
      .def("set_backoff_factor", &GradScaler::set_backoff_factor)
      .def("set_growth_interval", [](GradScaler& s, int64_t interval) { s.set_growth_interval(interval); })
      .def("is_enabled", &GradScaler::is_enabled)
      .def("state_dict", &GradScaler::state_dict)
      .def("load_state_dict", &GradScaler::load_state_dict);
}
}  // namespace

void define_nn(nb::module_& m) {
  define_grad_scaler(m);
  m.def("_set_data", [](const Tensor& x, const Tensor& value) { Values(x).set_data(value); });

  nb::class_<optim::Optimizer>(m, "_Optimizer")
      .def("step",
           [](optim::Optimizer& o) {
             const Unlocked unlocked;
             o.step();
           })
      .def("step_with",
           [](optim::Optimizer& o, const nb::callable& closure) {
             const Callback call(closure);
             const Unlocked unlocked;
             return o.step([&call] {
               const nb::gil_scoped_acquire locked;
               return nb::cast<Tensor>(call.handle()());
             });
           })
      .def("zero_grad", &optim::Optimizer::zero_grad)
      .def("add_param_group", [](optim::Optimizer& o, const nb::dict& g) { o.add_param_group(group_from(g)); })
      .def("settings", [](optim::Optimizer& o, size_t i) { return settings_of(group_at(o, i)); })
      .def("change", [](optim::Optimizer& o, size_t i, const std::string& name,
                        nb::handle value) { change_setting(group_at(o, i), name, value); })
      .def("state_dict", [](const optim::Optimizer& o) { return to_python(o.state_dict()); })
      .def("load_state_dict", [](optim::Optimizer& o, const nb::dict& d) { o.load_state_dict(from_python(d)); });
  nb::class_<optim::Scheduler>(m, "_Scheduler")
      .def("step", &optim::Scheduler::step)
      .def_prop_ro("last_epoch", &optim::Scheduler::last_epoch)
      .def("get_last_lr", &optim::Scheduler::get_last_lr)
      .def("state_dict", &optim::Scheduler::state_dict)
      .def("load_state_dict", &optim::Scheduler::load_state_dict);
  define_combined_schedules(m);
  using Plateau = optim::ReduceLROnPlateau;
  nb::class_<Plateau>(m, "_Plateau")
      .def("step", &Plateau::step)
      .def("get_last_lr", &Plateau::get_last_lr)
      .def("state_dict", &Plateau::state_dict)
      .def("load_state_dict", &Plateau::load_state_dict);
}

}  // namespace volta::python
