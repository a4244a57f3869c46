// Differentiation: grad, modes, custom functions, checkpoints, numerical checks.
#include <volta/autograd.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <volta/autocast.h>

#include "callback.h"
#include "objects.h"

namespace volta::python {
namespace {

using List = std::vector<Tensor>;

List tensors_from(nb::handle o) {
  List list;
  if (const Tensor* x = tensor_in(o.ptr())) return {*x};
  if (o.is_none()) return {Tensor()};
  for (const nb::handle item : o) {
    const Tensor* x = item.is_none() ? nullptr : tensor_in(item.ptr());
    if (!x && !item.is_none()) raise(PyExc_TypeError, "expected Tensors");
    list.push_back(x ? *x : Tensor());
  }
  return list;
}
nb::tuple tuple_of(const List& list) { return nb::steal<nb::tuple>(wrap(list)); }

// A Python function of tensors as one of C++.
TensorFunction function_of(const nb::callable& f) {
  return [call = Callback(f)](const List& in) {
    const nb::gil_scoped_acquire locked;
    return tensors_from(call.handle()(*tuple_of(in)));
  };
}
std::function<Tensor(const Tensor&)> simple_function_of(const nb::callable& f) {
  return [call = Callback(f)](const Tensor& x) {
    const nb::gil_scoped_acquire locked;
    return nb::cast<Tensor>(call(nb::cast(x)));
  };
}

// Modes nest, so that leaving one gives back what was before; the object may be entered again.
class Mode {
 public:
  Mode(bool record, bool inference) : record_(record), inference_(inference) {}
  Mode(const Mode&) = delete;
  Mode& operator=(const Mode&) = delete;
  void enter() { guards_.push_back(std::make_unique<GradGuard>(record_, inference_)); }
  void leave() {
    if (!guards_.empty()) guards_.pop_back();
  }

 private:
  bool record_, inference_;
  std::vector<std::unique_ptr<GradGuard>> guards_;
};

class AutocastMode {
 public:
  AutocastMode(DType dtype, bool enabled, bool cache_enabled) : dtype_(dtype), options_{enabled, cache_enabled} {}
  AutocastMode(const AutocastMode&) = delete;
  AutocastMode& operator=(const AutocastMode&) = delete;
  void enter() { guards_.push_back(std::make_unique<Autocast>(dtype_, options_)); }
  void leave() {
    if (!guards_.empty()) guards_.pop_back();
  }

 private:
  DType dtype_;
  AutocastOptions options_;
  std::vector<std::unique_ptr<Autocast>> guards_;
};

}  // namespace

void define_autograd(nb::module_& m) {
  nb::class_<Mode>(m, "_Mode").def(nb::init<bool, bool>()).def("enter", &Mode::enter).def("leave", &Mode::leave);
  nb::class_<AutocastMode>(m, "_Autocast")
      .def(
          "__init__",
          [](AutocastMode* at, nb::handle dtype, bool enabled, bool cache_enabled) {
            const DType* half = dtype_in(dtype.ptr());
            if (!half) raise(PyExc_TypeError, "autocast(): expected a dtype");
            new (at) AutocastMode(*half, enabled, cache_enabled);
          },
          nb::arg(), nb::arg(), nb::arg())
      .def("enter", &AutocastMode::enter)
      .def("leave", &AutocastMode::leave);
  m.def("is_autocast_enabled", is_autocast_enabled);
  m.def("is_grad_enabled", is_grad_enabled);
  m.def("is_inference_mode_enabled", is_inference_mode);
  m.def(
      "_grad",
      [](nb::handle outputs, nb::handle inputs, nb::handle grad_outputs, nb::handle retain_graph, bool create_graph,
         bool allow_unused) {
        const List ys = tensors_from(outputs), xs = tensors_from(inputs);
        GradOptions options{.create_graph = create_graph, .allow_unused = allow_unused};
        if (!retain_graph.is_none()) options.retain_graph = nb::cast<bool>(retain_graph);
        if (!grad_outputs.is_none()) options.grad_outputs = tensors_from(grad_outputs);
        const List result = (Unlocked(), grad(ys, xs, options));
        return tuple_of(result);
      },
      nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg());
  // The rule is given the gradients of the values and returns those of the inputs.
  m.def("_with_backward", [](const std::string& name, nb::handle values, nb::handle inputs, const nb::callable& rule) {
    const auto call = function_of(rule);
    return tuple_of(
        with_backward(name, tensors_from(values), tensors_from(inputs), [call](const List& g) { return call(g); }));
  });
  m.def("_checkpoint", [](const nb::callable& f, nb::handle inputs) {
    const List in = tensors_from(inputs);
    const TensorFunction call = function_of(f);
    const List out = (Unlocked(), checkpoint(call, in));
    return tuple_of(out);
  });
  const auto check = [](auto* f) {
    return [f](const nb::callable& function, nb::handle inputs, double eps, double atol, double rtol, bool fast_mode,
               bool raise_exception) {
      const List in = tensors_from(inputs);
      const TensorFunction call = function_of(function);
      const Unlocked unlocked;
      return f(call, in, {eps, atol, rtol, fast_mode, raise_exception});
    };
  };
  const auto define_check = [&](const char* name, auto* f) {
    m.def(name, check(f), nb::arg("func"), nb::arg("inputs"), nb::kw_only(), nb::arg("eps") = 1e-6,
          nb::arg("atol") = 1e-5, nb::arg("rtol") = 1e-3, nb::arg("fast_mode") = false,
          nb::arg("raise_exception") = true);
  };
  define_check("gradcheck", gradcheck_all);
  define_check("gradgradcheck", gradgradcheck_all);
  m.def(
      "jacobian",
      [](const nb::callable& f, const Tensor& x, bool create_graph) {
        const auto call = simple_function_of(f);
        const Unlocked unlocked;
        return jacobian(call, x, create_graph);
      },
      nb::arg("func"), nb::arg("inputs"), nb::arg("create_graph") = false);
  m.def(
      "hessian",
      [](const nb::callable& f, const Tensor& x) {
        const auto call = simple_function_of(f);
        const Unlocked unlocked;
        return hessian(call, x);
      },
      nb::arg("func"), nb::arg("inputs"));
}

}  // namespace volta::python
