// Tensors of other libraries as ours and the reverse, without copies, by DLPack.
#include "dlpack.h"

#include <nanobind/stl/optional.h>

#include <memory>

#include "objects.h"

namespace volta::python {
namespace {

[[noreturn]] void refuse(const std::string& why) { raise(PyExc_BufferError, "dlpack: " + why); }

dlpack::Type type_of(DType dtype) {
  const auto bits = uint8_t(8 * traits(dtype).size);
  switch (traits(dtype).kind) {
    case volta::Kind::boolean: return {dlpack::truth, 8, 1};
    case volta::Kind::unsigned_int: return {dlpack::unsigned_integer, bits, 1};
    case volta::Kind::signed_int: return {dlpack::integer, bits, 1};
    default: return {dtype == bf16 ? dlpack::bfloat : dlpack::floating, bits, 1};
  }
}
DType dtype_from(const dlpack::Type& type) {
  for (int i = 0; i < dtype_count; ++i) {
    const dlpack::Type known = type_of(DType(i));
    if (known.code == type.code && known.bits == type.bits && type.lanes == 1) return DType(i);
  }
  refuse("no dtype for code " + std::to_string(type.code) + " of " + std::to_string(type.bits) + " bits and " +
         std::to_string(type.lanes) + " lanes");
}
dlpack::Device device_of(const Tensor& x) {
  if (x.device().is_cpu()) return {dlpack::cpu, 0};
  return {x.device().is_cuda() ? dlpack::cuda : dlpack::extension, x.device().index};
}

// The first of a pair (type, index) or (major, minor): an int, or a member of some library's enumeration.
int integer_at_0(const nb::object& pair, const char* what) {
  const bool is_pair = PyTuple_Check(pair.ptr()) && PyTuple_Size(pair.ptr()) == 2;
  nb::object first = is_pair ? pair[nb::int_(0)] : nb::none();
  if (nb::hasattr(first, "value")) first = first.attr("value");
  int n = 0;
  if (!nb::try_cast<int>(first, n)) raise(PyExc_TypeError, std::string("dlpack: ") + what + " is a pair of ints");
  return n;
}
int device_type_in(const nb::object& pair) { return integer_at_0(pair, "a device"); }

// What an exported tensor keeps until its consumer is done with it.
template <class M> struct Exported {
  explicit Exported(const Tensor& x) : memory(x.detach()), shape(x.shape()), strides(x.strides()) {
    managed.context = this;
    managed.deleter = [](M* m) { delete static_cast<Exported*>(m->context); };
    managed.view = {
        x.raw_data(), device_of(x), int32_t(x.dim()), type_of(x.dtype()), shape.begin(), strides.begin(), 0};
  }
  Tensor memory;  // a handle of its own: x may get other memory
  Shape shape, strides;
  M managed{};
};

template <class M> void delete_unused(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;  // a consumer took it, and renamed it
  M* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

nb::object export_tensor(const Tensor& given, nb::handle stream, const nb::object& max_version,
                         const nb::object& dl_device, std::optional<bool> copy) {
  if (given.requires_grad()) refuse("a tensor that requires grad is not handed out: use x.detach()");
  Tensor x = given;
  bool copied = copy.value_or(false);
  if (!dl_device.is_none()) {
    const int type = device_type_in(dl_device);
    if (type != device_of(x).type) {
      if (type != dlpack::cpu || (copy && !*copy)) refuse("the tensor is not on the device that was asked for");
      x = x.to("cpu");
      copied = true;
    }
  }
  if (copied && x.shares_storage(given)) x = x.clone();
  if (x.device().is_cuda() && (stream.is_none() || nb::cast<int64_t>(stream) != -1))
    cuda::synchronize(x.device().index);
  const bool versioned = !max_version.is_none() && integer_at_0(max_version, "max_version") >= 1;
  if (!versioned) {
    auto owner = std::make_unique<Exported<dlpack::Managed>>(x);
    nb::object capsule = nb::steal(PyCapsule_New(&owner->managed, dlpack::name,
                                                 [](PyObject* c) { delete_unused<dlpack::Managed>(c, dlpack::name); }));
    if (!capsule.is_valid()) throw ErrorIsSet();
    owner.release();
    return capsule;
  }
  auto owner = std::make_unique<Exported<dlpack::ManagedVersioned>>(x);
  owner->managed.version = {1, 0};
  owner->managed.flags = copied ? dlpack::is_copied : 0;
  nb::object capsule = nb::steal(PyCapsule_New(&owner->managed, dlpack::versioned_name, [](PyObject* c) {
    delete_unused<dlpack::ManagedVersioned>(c, dlpack::versioned_name);
  }));
  if (!capsule.is_valid()) throw ErrorIsSet();
  owner.release();
  return capsule;
}

// Deletes what was imported with the interpreter's lock held: the deleter may be Python's.
template <class M> std::shared_ptr<M> own(M* managed) {
  return std::shared_ptr<M>(managed, [](M* m) {
    if (!m->deleter || !Py_IsInitialized()) return;
    const nb::gil_scoped_acquire locked;
    m->deleter(m);
  });
}

Tensor from_view(const dlpack::View& view, std::function<void()> release) {
  const DType dtype = dtype_from(view.dtype);
  Device device;
  if (view.device.type == dlpack::cuda) device = Device(DeviceType::cuda, view.device.id);
  else if (view.device.type != dlpack::cpu && view.device.type != dlpack::cuda_host)
    refuse("devices of type " + std::to_string(view.device.type) + " are not supported");
  Shape shape, strides;
  if (view.ndim < 0 || view.ndim > Shape::max_rank) refuse(std::to_string(view.ndim) + " axes are too many");
  for (int i = 0; i < view.ndim; ++i) shape.push_back(view.shape[i]);
  for (int i = 0; i < view.ndim; ++i) strides.push_back(view.strides ? view.strides[i] : 0);
  if (!view.strides)
    for (int64_t i = view.ndim - 1, step = 1; i >= 0; step *= shape[i--]) strides[i] = step;
  char* data = static_cast<char*>(view.data) + view.byte_offset;
  if (device.is_cpu() && reinterpret_cast<uintptr_t>(data) % traits(dtype).size)
    refuse("the memory is not aligned to its elements");
  return from_memory(data, shape, strides, dtype, device, std::move(release));
}

Tensor import_capsule(const nb::object& capsule, bool shares, bool copies) {
  PyObject* c = capsule.ptr();
  if (PyCapsule_IsValid(c, dlpack::versioned_name)) {
    auto* managed = static_cast<dlpack::ManagedVersioned*>(PyCapsule_GetPointer(c, dlpack::versioned_name));
    if (managed->version.major > 1) refuse("version " + std::to_string(managed->version.major) + " is not known");
    const bool must_copy = managed->flags & dlpack::read_only;
    if (must_copy && shares) refuse("the memory is read-only, and a copy was forbidden");
    if (PyCapsule_SetName(c, dlpack::used_versioned_name)) throw ErrorIsSet();
    auto owner = own(managed);
    const Tensor x = from_view(managed->view, [owner]() mutable { owner.reset(); });
    return must_copy || copies ? x.clone() : x;
  }
  if (!PyCapsule_IsValid(c, dlpack::name)) refuse("not a DLPack capsule, or one that was used before");
  auto* managed = static_cast<dlpack::Managed*>(PyCapsule_GetPointer(c, dlpack::name));
  if (PyCapsule_SetName(c, dlpack::used_name)) throw ErrorIsSet();
  auto owner = own(managed);
  const Tensor x = from_view(managed->view, [owner]() mutable { owner.reset(); });
  return copies ? x.clone() : x;
}

nb::object capsule_of(const nb::object& producer) {
  if (PyCapsule_CheckExact(producer.ptr())) return producer;
  if (!nb::hasattr(producer, "__dlpack__")) raise(PyExc_TypeError, "from_dlpack(): the object has no __dlpack__");
  const nb::object method = producer.attr("__dlpack__");
  const nb::object device = producer.attr("__dlpack_device__")();
  nb::dict keywords;
  if (device_type_in(device) == dlpack::cuda) keywords["stream"] = 1;  // the default stream, which ops run on
  try {
    nb::dict versioned;
    versioned.update(keywords);
    versioned["max_version"] = nb::make_tuple(1, 0);
    return method(**versioned);
  } catch (nb::python_error& e) {
    if (!e.matches(PyExc_TypeError)) throw;  // a producer of before version 1 does not know the keyword
  }
  return method(**keywords);
}

}  // namespace

void define_dlpack(nb::module_& m) {
  const nb::object tensor = m.attr("Tensor");
  nb::setattr(tensor, "__dlpack__",
              nb::cpp_function(export_tensor, nb::scope(tensor), nb::name("__dlpack__"), nb::is_method(), nb::kw_only(),
                               nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
                               nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none()));
  nb::setattr(tensor, "__dlpack_device__",
              nb::cpp_function(
                  [](const Tensor& x) {
                    const dlpack::Device device = device_of(x);
                    return nb::make_tuple(device.type, device.id);
                  },
                  nb::scope(tensor), nb::name("__dlpack_device__"), nb::is_method()));
  m.def(
      "from_dlpack",
      [](const nb::object& x, nb::handle device, nb::handle copy) {
        if (!copy.is_none() && !PyBool_Check(copy.ptr()))
          raise(PyExc_TypeError, "from_dlpack(): copy is a bool or None");
        const bool shares = copy.is(Py_False), copies = copy.is(Py_True);
        const Tensor y = import_capsule(capsule_of(x), shares, copies);
        if (device.is_none()) return y;
        const auto wanted = device_in(device.ptr());
        if (!wanted) raise(PyExc_TypeError, "from_dlpack(): expected a device");
        if (*wanted != y.device() && shares) refuse("another device needs a copy, which was forbidden");
        return y.to(*wanted);
      },
      nb::arg("x"), nb::kw_only(), nb::arg("device") = nb::none(), nb::arg("copy") = nb::none(),
      "A tensor that shares the memory of another library's array.");
}

}  // namespace volta::python
