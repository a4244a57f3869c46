// Every op as a Python function and a method of Tensor: two small callable types over the generated table.
#include "objects.h"

#include <structmember.h>

#include <cstddef>
#include <map>

namespace volta::python {

extern const Op op_table[];
extern const int op_table_size;

namespace {

struct OpObject {
  PyObject_HEAD vectorcallfunc call;
  const Op* op;
};

PyObject* call_op(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) noexcept {
  return call(*reinterpret_cast<OpObject*>(self)->op, args, PyVectorcall_NARGS(flags), names);
}

const Op& op_of(PyObject* self) { return *reinterpret_cast<OpObject*>(self)->op; }

PyObject* get_name(PyObject* self, void*) { return PyUnicode_FromString(op_of(self).name); }
PyObject* get_module(PyObject* self, void*) { return PyUnicode_FromString(op_of(self).module); }
PyObject* get_doc(PyObject* self, void*) {
  const Op& op = op_of(self);
  std::string text;
  for (int i = 0; i < op.count; ++i) text += std::string(op.name) + op.overloads[i].signature + "\n";
  return PyUnicode_FromString((text + "\n" + op.doc).c_str());
}
PyObject* get_signature(PyObject* self, void*) {
  const Op& op = op_of(self);
  return op.count == 1 ? PyUnicode_FromString(op.overloads[0].signature) : Py_NewRef(Py_None);
}
// For inspect.signature, which asks builtin functions alone for their texts.
PyObject* get_signature_object(PyObject* self, void*) {
  const Op& op = op_of(self);
  if (op.count != 1) {
    PyErr_SetString(PyExc_AttributeError, "__signature__");
    return nullptr;
  }
  const std::string arguments(op.overloads[0].signature);
  const std::string text = "lambda " + arguments.substr(1, arguments.size() - 2) + ": None";
  const nb::object globals = nb::steal(PyDict_New());
  const nb::object code = nb::steal(Py_CompileString(text.c_str(), op.name, Py_eval_input));
  const nb::object function =
      nb::steal(code.is_valid() ? PyEval_EvalCode(code.ptr(), globals.ptr(), nullptr) : nullptr);
  const nb::object inspect = nb::steal(PyImport_ImportModule("inspect"));
  if (!function.is_valid() || !inspect.is_valid()) return nullptr;
  return PyObject_CallMethod(inspect.ptr(), "signature", "O", function.ptr());
}
PyObject* represent(PyObject* self) {
  return PyUnicode_FromFormat("<function %s.%s>", op_of(self).module, op_of(self).name);
}
// By name, so that modules that hold functions can be pickled and copied.
PyObject* reduce(PyObject* self, PyObject*) { return get_name(self, nullptr); }
// x.relu alone; x.relu() does not come here.
PyObject* bind(PyObject* self, PyObject* object, PyObject*) {
  static PyObject* const method = nb::module_::import_("types").attr("MethodType").inc_ref().ptr();
  if (!object || object == Py_None) return Py_NewRef(self);
  return PyObject_CallFunctionObjArgs(method, self, object, nullptr);
}
void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyGetSetDef properties[] = {{"__name__", get_name, nullptr, nullptr, nullptr},
                            {"__qualname__", get_name, nullptr, nullptr, nullptr},
                            {"__module__", get_module, nullptr, nullptr, nullptr},
                            {"__doc__", get_doc, nullptr, nullptr, nullptr},
                            {"__signature__", get_signature_object, nullptr, nullptr, nullptr},
                            {"__text_signature__", get_signature, nullptr, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(OpObject, call), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};

template <class F> void* slot(F* f) { return reinterpret_cast<void*>(f); }

PyTypeObject* make_type(const char* name, bool method) {
  std::vector<PyType_Slot> slots = {{Py_tp_call, slot(PyVectorcall_Call)},
                                    {Py_tp_repr, slot(represent)},
                                    {Py_tp_dealloc, slot(deallocate)},
                                    {Py_tp_getset, properties},
                                    {Py_tp_methods, methods},
                                    {Py_tp_members, members}};
  if (method) slots.push_back({Py_tp_descr_get, slot(bind)});
  slots.push_back({0, nullptr});
  const unsigned flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | (method ? Py_TPFLAGS_METHOD_DESCRIPTOR : 0);
  PyType_Spec spec = {name, sizeof(OpObject), 0, flags, slots.data()};
  PyObject* type = PyType_FromSpec(&spec);
  if (!type) throw nb::python_error();
  return reinterpret_cast<PyTypeObject*>(type);
}

nb::object make(PyTypeObject* type, const Op& op) {
  auto* o = PyObject_New(OpObject, type);
  if (!o) throw nb::python_error();
  o->call = call_op;
  o->op = &op;
  return nb::steal(reinterpret_cast<PyObject*>(o));
}

}  // namespace

PyObject* wrap_fields(const char* type, std::initializer_list<const char*> names,
                      std::initializer_list<PyObject*> items) {
  static std::map<std::string, PyTypeObject*> types;
  PyTypeObject*& known = types[type];
  if (!known) {
    std::vector<PyStructSequence_Field> fields;
    for (const char* name : names) fields.push_back({name, nullptr});
    fields.push_back({nullptr, nullptr});
    const std::string full = std::string("volta.") + type;
    PyStructSequence_Desc description = {full.c_str(), nullptr, fields.data(), int(names.size())};
    known = PyStructSequence_NewType(&description);
    if (!known) throw nb::python_error();
  }
  PyObject* tuple = PyStructSequence_New(known);
  Py_ssize_t i = 0;
  for (PyObject* item : items) PyStructSequence_SetItem(tuple, i++, item);
  return tuple;
}

void define_ops(nb::module_& m) {
  PyTypeObject* function = make_type("volta.Function", false);
  PyTypeObject* method = make_type("volta.Method", true);
  const nb::handle tensor((PyObject*)tensor_type);
  nb::dict others;  // by module
  for (int i = 0; i < op_table_size; ++i) {
    const Op& op = op_table[i];
    if (op.where & Op::method) nb::setattr(tensor, op.name, make(method, op));
    if (!(op.where & Op::function)) continue;
    if (std::string_view(op.module) == "volta") {
      m.attr(op.name) = make(function, op);
    } else {
      if (!others.contains(op.module)) others[op.module] = nb::dict();
      others[op.module][op.name] = make(function, op);
    }
  }
  m.attr("_modules") = others;
}

}  // namespace volta::python
