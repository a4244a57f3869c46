// The extension module volta._volta.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <volta/print.h>
#include <volta/random.h>
#include <volta/threads.h>

#include <cstring>

#include "nn_objects.h"
#include "objects.h"

namespace volta::python {
namespace {

std::optional<DType> maybe_dtype(nb::handle o) {
  if (o.is_none()) return {};
  const DType* dtype = dtype_in(o.ptr());
  if (!dtype) raise(PyExc_TypeError, "expected a dtype");
  return *dtype;
}
std::optional<Device> maybe_device(nb::handle o) {
  if (o.is_none()) return {};
  const auto device = device_in(o.ptr());
  if (!device) raise(PyExc_TypeError, "expected a device");
  return device;
}

void define_creation(nb::module_& m) {
  m.def(
      "tensor",
      [](nb::handle data, nb::handle dtype, nb::handle device, bool requires_grad) {
        Tensor x = tensor_of(data.ptr(), maybe_dtype(dtype), maybe_device(device).value_or(Device()));
        return requires_grad ? x.requires_grad_() : x;
      },
      nb::arg("data"), nb::kw_only(), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
      nb::arg("requires_grad") = false,
      "A copy of numbers, nested lists of them, an array or a tensor: tensor([[1, 2], [3, 4]])");
  m.def(
      "from_numpy",
      [](nb::handle array) {
        if (!has_buffer(array.ptr()))
          raise(PyExc_TypeError, "from_numpy(): expected an array, or an object with a buffer");
        Py_buffer view;
        if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_RECORDS_RO)) throw ErrorIsSet();
        const bool readonly = view.readonly;
        PyBuffer_Release(&view);
        if (readonly)
          throw Error(Error::Kind::argument, "from_numpy",
                      "the array is read-only, and a tensor could write to it: volta.tensor(array) copies");
        return from_buffer(array.ptr());
      },
      nb::arg("ndarray"), "A tensor that shares an array's memory, which lives until both are gone.");
  m.def("_to_bytes", [](const Tensor& x) {
    const Tensor host = x.detach().to("cpu").contiguous();
    return nb::bytes(static_cast<const char*>(host.raw_data()), size_t(host.nbytes()));
  });
  m.def("_from_bytes", [](const nb::bytes& data, nb::handle dtype, const std::vector<int64_t>& shape) {
    const Tensor x = empty(Shape(shape), {.dtype = maybe_dtype(dtype)});
    if (int64_t(data.size()) != x.nbytes())
      raise(PyExc_ValueError, "the bytes of a pickled tensor do not fit its shape");
    if (x.nbytes() > 0) std::memcpy(x.raw_data(), data.c_str(), data.size());
    return x;
  });
  m.def("_from_buffer", [](nb::handle o) { return from_buffer(o.ptr()); });
}

void define_random(nb::module_& m) {
  nb::class_<Generator>(m, "Generator", "A stream of random numbers.")
      .def(
          "__init__", [](Generator* self, uint64_t seed) { new (self) Generator(seed); }, nb::arg("seed") = 0)
      .def("manual_seed",
           [](nb::object self, uint64_t seed) {
             nb::cast<Generator&>(self).manual_seed(seed);
             return self;
           })
      .def("get_state",
           [](const Generator& g) {
             const auto s = g.state();
             return nb::make_tuple(s.seed, s.offset);
           })
      .def("set_state",
           [](Generator& g, const std::pair<uint64_t, uint64_t>& s) {
             g.set_state({s.first, s.second});
           })
      .def("__getstate__", [](const Generator& g) { return std::pair(g.state().seed, g.state().offset); })
      .def("__setstate__", [](Generator& g, const std::pair<uint64_t, uint64_t>& s) {
        (new (&g) Generator(s.first))->set_state({s.first, s.second});
      });
  m.def(
      "manual_seed", [](uint64_t seed) { manual_seed(seed); }, nb::arg("seed"));
  m.def(
      "default_generator", []() -> Generator& { return default_generator(); }, nb::rv_policy::reference);
}

void define_sequences(nb::module_& m) {
  nb::class_<PackedSequence>(m, "PackedSequence", "Sequences of different lengths without their padding.")
      .def_rw("data", &PackedSequence::data)
      .def_rw("batch_sizes", &PackedSequence::batch_sizes)
      .def_rw("order", &PackedSequence::order)
      .def("lengths", &PackedSequence::lengths)
      .def("__getstate__", [](const PackedSequence& p) { return nb::make_tuple(p.data, p.batch_sizes, p.order); })
      .def("__setstate__",
           [](PackedSequence& p, const std::tuple<Tensor, std::vector<int64_t>, std::vector<int64_t>>& s) {
             new (&p) PackedSequence{std::get<0>(s), std::get<1>(s), std::get<2>(s)};
           });
}

void define_system(nb::module_& m) {
  m.def("set_num_threads", set_num_threads, nb::arg("n"));
  m.def("get_num_threads", get_num_threads);
  m.def("_cuda_is_available", cuda::is_available);
  m.def("_cuda_device_count", cuda::device_count);
  m.def("_cuda_synchronize", [](int device) {
    const Unlocked unlocked;
    cuda::synchronize(device);
  });
  m.def("_cuda_empty_cache", [](int device) { cuda::empty_cache(device); });
  m.def("_cuda_allow_tf32", cuda::allow_tf32);
  m.def("_print_options", [] {
    const PrintOptions o = print_options();
    return std::tuple(o.precision, o.threshold, o.edge_items, o.line_width);
  });
  m.def("_set_print_options", [](int precision, int64_t threshold, int64_t edge_items, int line_width) {
    set_print_options({precision, threshold, edge_items, line_width});
  });
}

}  // namespace
}  // namespace volta::python

NB_MODULE(_volta, m) {
  using namespace volta::python;
  // The classes are the process's: those of a second interpreter, or after the modules were forgotten, would mix with them.
  if (tensor_type) throw nanobind::import_error("volta is imported once in a process, by one interpreter");
  nanobind::set_leak_warnings(false);  // tensors in module globals live until the interpreter has gone
  define_errors(m);
  define_dtypes(m);
  define_tensor(m);
  define_random(m);
  define_sequences(m);
  define_creation(m);
  define_system(m);
  define_ops(m);
  define_dlpack(m);
  define_autograd(m);
  define_nn(m);
  define_parts(m);
  define_io(m);
  nanobind::module_::import_("atexit").attr("register")(nanobind::cpp_function(stop_unlocked_threads));
}
