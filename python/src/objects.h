// The classes of the package as Python objects: tensors, dtypes, devices; and errors.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "arguments.h"

namespace volta::python {

inline PyTypeObject* tensor_type = nullptr;
inline ptrdiff_t tensor_offset = 0;  // of the handle in its Python object, the same in all of them

// The handle in an object that is a tensor.
inline Tensor& handle_of(PyObject* o) { return *reinterpret_cast<Tensor*>(reinterpret_cast<char*>(o) + tensor_offset); }
// Null unless it is a tensor.
inline const Tensor* tensor_in(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (type != tensor_type && !PyType_IsSubtype(type, tensor_type)) return nullptr;
  return &handle_of(o);
}

// Elements from which on the lock of the interpreter is let go while an op runs; below, that would take longer.
inline constexpr int64_t long_work = 2048;
// What an op on the tensor adds to its work. On other devices even a short op may wait.
int64_t work_of(const Tensor& x);

PyObject* wrap(Tensor x);  // None if undefined
PyObject* wrap(bool x);
PyObject* wrap(double x);
PyObject* wrap(const std::vector<Tensor>& list);   // a tuple
PyObject* wrap(const std::vector<int64_t>& list);  // a list
PyObject* wrap(PackedSequence x);
PyObject* wrap(const Scalar& x);
PyObject* wrap(const Shape& x);  // a tuple
// A named tuple; takes the items over.
PyObject* wrap_fields(const char* type, std::initializer_list<const char*> names,
                      std::initializer_list<PyObject*> items);

PyObject* wrap(DType dtype);  // volta.float32 and its kin
PyObject* wrap(const Device& device);
const DType* dtype_in(PyObject* o);  // null unless it is one; also of Python's bool, int and float
std::optional<Device> device_in(PyObject* o);
std::string_view python_name(DType dtype);  // float32

// What only Python has of the ops: moving and converting in one call, and a reduction or scan in a dtype.
Tensor moved(const Tensor& x, const Device& device, std::optional<DType> dtype, bool non_blocking, bool copy);
Tensor moved(const Tensor& x, DType dtype, const std::optional<Device>& device, bool non_blocking, bool copy);
Tensor moved(const Tensor& x, const Tensor& other, bool non_blocking, bool copy);
template <class F> Tensor in_dtype(std::optional<DType> dtype, const Tensor& x, const F& call) {
  return dtype ? call(x.to(*dtype)).to(*dtype) : call(x);
}

// Sets Python's error from the C++ exception that is being handled.
void set_python_error() noexcept;

// Data of Python: numbers and nested lists of them, buffers, tensors.
Tensor tensor_of(PyObject* data, std::optional<DType> dtype, const Device& device);
Tensor from_buffer(PyObject* exporter);  // shares the memory
bool has_buffer(PyObject* o);
inline bool is_range(PyObject* o) { return Py_TYPE(o) == &PyRange_Type; }
PyObject* to_list(const Tensor& x);
int get_buffer(PyObject* self, Py_buffer* view, int flags);
void release_buffer(PyObject* self, Py_buffer* view);

PyObject* get_item(PyObject* self, PyObject* key);
int set_item(PyObject* self, PyObject* key, PyObject* value);

// Memory of others as a tensor; strides in elements, of any sign.
Tensor from_memory(void* data, const Shape& shape, const Shape& strides, DType dtype, const Device& device,
                   std::function<void()> release);

void define_errors(nb::module_& m);
void define_dtypes(nb::module_& m);
void define_tensor(nb::module_& m);
void define_ops(nb::module_& m);
void define_dlpack(nb::module_& m);
void define_autograd(nb::module_& m);
void define_io(nb::module_& m);
void define_parts(nb::module_& m);

}  // namespace volta::python
