#!/usr/bin/env python3
"""Writes the bindings and their type stubs from the list of ops and the public headers.

    generate.py OPS_JSON INCLUDE_FOLDER OUTPUT_FOLDER STUBS_FOLDER

The list knows every op; the headers know the fields of options, the functions that make tensors, the methods that
change them, and the optimizers. Nothing here names an op but to give it PyTorch's names of parameters.
"""

import json
import keyword
import pathlib
import re
import sys

# C++ type: what a parameter of it takes (arguments.h), and its annotation.
INT, FLOAT, LIST = "builtins.int", "builtins.float", "Sequence[builtins.int]"
TYPES = {
    "Tensor": ("tensor", "Tensor"),
    "Operand": ("operand", "Tensor | Number"),
    "Scalar": ("number", "Number"),
    "int64_t": ("integer", INT),
    "Int": ("integer", INT),
    "int": ("integer", INT),
    "double": ("number", FLOAT),
    "bool": ("truth", "builtins.bool"),
    "Axes": ("axes", f"{INT} | {LIST}"),
    "Shape": ("shape", f"{INT} | {LIST}"),
    "Ints": ("ints", LIST),
    "std::vector<int64_t>": ("ints", f"{LIST} | Tensor"),
    "PerAxis": ("integers", f"{INT} | {LIST}"),
    "ConvPadding": ("padding", f"{INT} | {LIST} | str"),
    "Numbers": ("numbers", f"{FLOAT} | Sequence[{FLOAT}]"),
    "std::vector<Tensor>": ("tensors", "Sequence[Tensor]"),
    "std::string": ("text", "str"),
    "DType": ("dtype", "_dtype"),
    "Device": ("device", "_device | str"),
    "Generator*": ("generator", "Generator"),
    "PackedSequence": ("packed", "PackedSequence"),
    "std::pair<double, double>": ("numbers", f"tuple[{FLOAT}, {FLOAT}]"),
    "Betas": ("numbers", f"tuple[{FLOAT}, {FLOAT}]"),
    "std::pair<std::optional<double>, double>": ("numbers", f"tuple[{FLOAT} | None, {FLOAT}]"),
    "std::array<double, 3>": ("numbers", f"tuple[{FLOAT}, {FLOAT}, {FLOAT}]"),
    "std::vector<double>": ("numbers", f"Sequence[{FLOAT}]"),
    "std::function<double(double)>": ("callable", f"Callable[[{FLOAT}], {FLOAT}]"),
    "optim::Params": ("tensors", "Iterable[Tensor] | Iterable[dict[str, Any]]"),
    "optim::Optimizer*": ("packed", "Optimizer"),
    "std::function<Tensor(const Tensor&, const Tensor&)>": ("callable", "Callable[[Tensor, Tensor], Tensor]"),
}
RESULTS = {
    "Tensor": "Tensor",
    "bool": "builtins.bool",
    "double": FLOAT,
    "std::vector<Tensor>": "tuple[Tensor, ...]",
    "PackedSequence": "PackedSequence",
}

# PyTorch's names where the list has others.
NAMES = {
    "addmm": {"a": "mat1", "b": "mat2"},
    "baddbmm": {"a": "batch1", "b": "batch2"},
    "addbmm": {"a": "batch1", "b": "batch2"},
    "addmv": {"a": "mat", "v": "vec"},
    "addr": {"u": "vec1", "v": "vec2"},
    "addcmul": {"a": "tensor1", "b": "tensor2"},
    "addcdiv": {"a": "tensor1", "b": "tensor2"},
    "addcmul_": {"a": "tensor1", "b": "tensor2"},
    "addcdiv_": {"a": "tensor1", "b": "tensor2"},
    "fill_diagonal_": {"value": "fill_value"},
    "mm": {"other": "mat2"},
    "bmm": {"other": "mat2"},
    "mv": {"vector": "vec"},
    "outer": {"other": "vec2"},
    "dot": {"other": "tensor"},
    "pow": {"b": "exponent"},
    "cdist": {"x": "x1", "other": "x2"},
    "bilinear": {"a": "input1", "b": "input2"},
    "cosine_similarity": {"a": "x1", "b": "x2"},
    "pairwise_distance": {"a": "x1", "b": "x2"},
    "trapezoid": {"y": "y", "x": "x"},
    "cumulative_trapezoid": {"y": "y", "x": "x"},
    "heaviside": {"b": "values"},
    "hardshrink": {"lambda": "lambd"},
    "softshrink": {"lambda": "lambd"},
    "vander": {"x": "x", "n": "N"},
    "scaled_dot_product_attention": {"q": "query", "k": "key", "v": "value"},
    "split": {"split_size": "split_size_or_sections", "sizes": "split_size_or_sections"},
    "slice_scatter": {"begin": "start"},
    "tensor_split": {"sections": "indices_or_sections", "indices": "indices_or_sections"},
    "reshape": {"shape": "shape"},
    "expand": {"shape": "size"},
    "broadcast_to": {"shape": "size"},
    "requires_grad_": {"on": "requires_grad"},
    "uniform_": {"low": "from_", "high": "to"},
    "zeros": {"shape": "size"},
    "ones": {"shape": "size"},
    "empty": {"shape": "size"},
    "rand": {"shape": "size"},
    "randn": {"shape": "size"},
    "full": {"shape": "size", "value": "fill_value"},
    "full_like": {"value": "fill_value"},
    "randint": {"shape": "size"},
    "meshgrid": {"axes": "tensors"},
    "CosineAnnealingLR": {"t_max": "T_max"},
    "CosineAnnealingWarmRestarts": {"t_0": "T_0", "t_mult": "T_mult"},
    "normal_": {"deviation": "std"},
}
# Other names of the same op, and forms that PyTorch gives to one name: (name, the op that is called, its parameters).
ALIASES = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctanh": "atanh",
    "arctan2": "atan2",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    "negative": "neg",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "not_equal": "ne",
    "concat": "cat",
    "concatenate": "cat",
    "std": "std_dev",
}
HINT = "bool non_blocking = false"  # accepted, and changes nothing
COPY = "bool copy = false"
FORMS = [
    ("clamp", "clamp_min", ["const Operand& x", "const Operand& min", "None max = {}"]),
    ("clamp", "clamp_max", ["const Operand& x", "None min = {}", "const Operand& max"]),
    ("to", "python::moved", ["const Tensor& x", "const Device& device", "std::optional<DType> dtype = {}", HINT, COPY]),
    ("to", "python::moved", ["const Tensor& x", "DType dtype", "std::optional<Device> device = {}", HINT, COPY]),
    ("to", "python::moved", ["const Tensor& x", "const Tensor& other", HINT, COPY]),
]
# Ops that take the dtype of their result, too.
WITH_DTYPE = {"sum", "nansum", "mean", "nanmean", "prod", "cumsum", "cumprod", "softmax", "log_softmax", "softmin"}
WRITTEN = {"WarmupLR"}  # in Python, and in the stub's template
SPREAD = {"block_diag", "broadcast_tensors", "cartesian_prod", "einsum", "meshgrid"}  # take tensors one by one, too
# Functions that Python wraps: their stubs are those of the wrappers.
REPLACED = set(
    """tensordot unique std var normal clip div divide true_divide round diff nonzero argsort bucketize searchsorted cdist logit
    repeat_interleave unique_consecutive norm var_mean std_mean atleast_1d atleast_2d atleast_3d histogram squeeze
    tensor_split take_along_dim scatter cov""".split()
)
# Methods that Python wraps: their stubs are in the template.
REPLACED_METHODS = set(
    """std var div div_ divide true_divide round round_ diff nonzero argsort logit logit_ repeat_interleave
    unique_consecutive norm histogram squeeze tensor_split take_along_dim scatter scatter_ clamp_""".split()
)
PROPERTIES = {"mT"}  # methods of C++ that are properties of Python
BY_HAND = {"tensor", "tensor_from", "from_blob"}  # what takes data of Python, in src/
OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift"]
CHOICES = {}  # (enum, value): PyTorch's name of it; from the headers
FUNCTIONAL = {"activation", "dropout", "norm", "attention", "conv", "pool", "resample", "loss"}


def split(text):
    """Parts between commas outside brackets."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "<{(") - (c in ">})")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts if p.strip()]


def plain(path):
    """A header without comments and preprocessing, on one line."""
    text = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
    return re.sub(r"\s+", " ", re.sub(r"^#.*$", "", text, flags=re.M))


class Field:
    def __init__(self, type_, name, default=None):
        self.type = re.sub(r"^const |&$", "", type_.strip()).removesuffix("&").strip()
        self.cpp, self.name, self.default = type_.strip(), name, default

    @property
    def inner(self):
        optional = re.fullmatch(r"std::optional<(.*)>", self.type)
        return optional.group(1) if optional else self.type

    @property
    def takes(self):
        if self.type == "None":
            return "nothing"
        return "text" if self.inner.startswith("Choice<") else TYPES[self.inner][0]

    @property
    def known(self):
        return self.type == "None" or self.inner.startswith("Choice<") or self.inner in TYPES

    @property
    def annotation(self):
        if self.type == "None":
            return "None"
        kind = "str" if self.inner.startswith("Choice<") else TYPES[self.inner][1]
        return kind + (
            " | None" if self.inner != self.type or (not self.required and self.python_default == "None") else ""
        )

    @property
    def required(self):
        return self.default is None

    @property
    def python_default(self):
        text = self.default
        if text in ("{}", "nullptr", None):
            return "None"
        text = text.replace("true", "True").replace("false", "False").replace("{}", "None")
        text = re.sub(r"\b(\w+)::(\w+)\b", lambda m: f"'{CHOICES[m.groups()]}'", text)
        return "(" + text[1:-1] + ")" if text.startswith("{") else text


def parse_fields(body):
    """Fields of an aggregate, or None where it has functions of its own."""
    fields = []
    for statement in body.split(";"):
        parts = split(statement)
        if not parts:
            continue
        for number, part in enumerate(parts):
            declared, _, default = part.partition("=")
            if number == 0:
                found = re.fullmatch(r"(.*[\w>*&])\s*\b(\w+)\s*", declared)
                if not found or not default and "(" in found.group(1).replace("std::function", "").split("<")[0]:
                    return None
                type_, name = found.groups()
            else:
                name = declared.strip()
            fields.append(Field(type_.strip(), name.strip(), default.strip() or None))
    return fields


def parse_parameter(text):
    declared, _, default = text.partition("=")
    found = re.fullmatch(r"(.*[\w>*&])\s*\b(\w+)\s*", declared.strip())
    return Field(found.group(1), found.group(2), default.strip() or None)


class Headers:
    def __init__(self, folder):
        volta = folder / "volta"
        self.text = {p.relative_to(volta).as_posix(): plain(p) for p in sorted(volta.rglob("*.h"))}
        self.structs = {}
        for text in self.text.values():
            for enum, values in re.findall(r"enum class (\w+)(?: : \w+)? \{([^}]*)\};", text):
                names = re.search(rf"choice_names\({enum}\) \{{ return \{{([^}}]*)\}}", text)
                if names:
                    pairs = zip(split(values), re.findall(r'"([^"]*)"', names.group(1)))
                    CHOICES.update({(enum, value): name for value, name in pairs})
        folders = ("ops/", "optim/")
        for name in ["tensor.h", "create.h", "nn/init.h"] + [n for n in self.text if n.startswith(folders)]:
            for struct, body in re.findall(
                r"struct (\w+) \{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\};", self.text[name]
            ):
                fields = parse_fields(body)
                if fields:
                    self.structs[struct] = fields

    def declarations(self, header, pattern):
        arguments = r"\(((?:[^;{}()]|\{\}|\([^()]*\))*)\)"
        return re.findall(pattern.replace("ARGUMENTS", arguments), self.text[header])


class Form:
    """One way to call an op: its parameters, with options flattened to keywords, and the C++ call."""

    def __init__(self, name, result, parameters, headers, call, in_place=False, pointwise=False):
        self.name, self.result, self.call, self.in_place = name, result, call, in_place
        self.parameters, self.reads, self.arguments = [], [], []
        self.usable, self.make = True, None
        self.pointwise = pointwise
        self.in_dtype = name in WITH_DTYPE
        if self.in_dtype:
            parameters = [*parameters, "std::optional<DType> dtype = {}"]
        for p in map(parse_parameter, parameters):
            options = headers.structs.get(p.type) if p.type.endswith("Options") or p.type == "Options" else None
            at = len(self.parameters)
            if p.type == "None":
                self.parameters.append(p)
            elif options:
                variable = f"v{at}"
                self.reads.append(f"{p.type} {variable}; read(a, {at}, {variable});")
                self.arguments.append(variable)
                self.parameters += options
            else:
                if not p.known:
                    self.usable = False
                    return
                self.read(p, at)
                self.parameters.append(p)
        self.usable = all(f.known for f in self.parameters)
        self.names = [self.python_name(i) for i in range(len(self.parameters))]

    def read(self, p, at):
        if p.type == "Tensor":
            if self.in_place and at == 0:
                self.reads.append("Tensor& v0 = a.self();")
            else:
                self.reads.append(f"const Tensor& v{at} = a.{'tensor' if p.required else 'maybe_tensor'}({at});")
        elif p.type.startswith("Choice<"):
            enum = p.type[7:-1]
            otherwise = "" if p.required else f"!a[{at}] ? {p.type}({p.default}) : "
            self.reads.append(f"const {p.type} v{at} = {otherwise}a.choice<{enum}>({at});")
        else:
            otherwise = "" if p.required else f", {p.type}({p.default if p.default != '{}' else ''})"
            if p.type == "Generator*" and not p.required:
                otherwise = ""
            if p.default and p.default.startswith("{") and p.default != "{}":
                otherwise = f", {p.type}{p.default}"
            self.reads.append(f"const auto v{at} = a.get<{p.type}>({at}{otherwise});")
        self.arguments.append(f"v{at}")

    def python_name(self, i):
        name = self.parameters[i].name
        given = NAMES.get(self.name, {}).get(name)
        if given:
            return given
        if name == "x" or name == "a" and self.pointwise:
            name = "input"
        if name == "b" and self.pointwise:
            name = "other"
        return name + "_" if keyword.iskeyword(name) else name

    def signature(self, typed=False, method=False, spread=False):
        """Of Python; `spread` takes the shape as numbers: reshape(2, 3)."""
        parts, optional = [], False
        for i, (name, p) in enumerate(zip(self.names, self.parameters)):
            if spread and i == self.variadic():
                parts.append(f"*{name}: {'Tensor' if p.takes == 'tensors' else INT}")
                continue
            if method and i == 0:
                parts.append("self")
                continue
            optional = optional or not p.required
            if p.required and optional and "*" not in parts:
                parts.append("*")  # it can only be named
            default = "" if p.required else p.python_default
            if typed:
                parts.append(f"{name}: {p.annotation}" + (f" = {default}" if default else ""))
            else:
                parts.append(name + (f"={default}" if default else ""))
        return ", ".join(parts)

    def variadic(self):
        """The shape or axes that may be given as several numbers: nothing that takes numbers may follow."""
        for i, p in enumerate(self.parameters):
            if p.takes == "tensors" and self.name in SPREAD:
                return i
            if p.takes in ("shape", "axes") and p.required:
                after = self.parameters[i + 1 : i + 2]
                return -1 if after and (after[0].required or after[0].takes == "axes") else i
            if p.takes in ("integer", "number"):
                break
        return -1

    def body(self, structs):
        lines = list(self.reads)
        if self.make:  # an object that Python owns
            optimizer = "*v0" if "Optimizer* " in self.reads[0] or "optim::Optimizer*>" in self.reads[0] else "v0"
            lines.append(
                f"return wrap(std::unique_ptr<optim::{self.make}>(std::make_unique<{self.call}>({optimizer}, v1)));"
            )
            return " ".join(lines)
        if not any(p.takes in ("tensor", "operand", "tensors") for p in self.parameters):
            lines.append("a.count(int64_t(1) << 40);")
        if self.in_place:
            lines += [f"(Unlocked(a), v0.{self.call}({', '.join(self.arguments[1:])}));", "return a.self_object();"]
        elif self.call.startswith("."):
            lines += [
                f"auto y = (Unlocked(a), v0{self.call}({', '.join(self.arguments[1:])}));",
                "return wrap(std::move(y));",
            ]
        elif self.in_dtype:
            first, *others, dtype = self.arguments
            call = f"[&](const Tensor& x) {{ return {self.call}({', '.join(['x', *others])}); }}"
            lines += [
                f"auto y = (Unlocked(a), in_dtype({dtype}, {first}, {call}));",
                "return wrap(std::move(y));",
            ]
        else:
            lines.append(f"auto y = (Unlocked(a), {self.call}({', '.join(self.arguments)}));")
            if self.result in structs and self.result != "PackedSequence":
                fields = structs[self.result]
                names = ", ".join(f'"{f.name}"' for f in fields)
                items = ", ".join(f"wrap(std::move(y.{f.name}))" for f in fields)
                lines.append(f'return wrap_fields("{self.result}", {{{names}}}, {{{items}}});')
            else:
                lines.append("return wrap(std::move(y));")
        return " ".join(lines)

    def result_annotation(self):
        return "Self" if self.in_place else RESULTS.get(self.result, self.result)


def python_doc(text):
    """The sentence, and its example in Python's words."""
    sentence, colon, example = text.rpartition(": ")
    if not colon or "(" not in example:
        return text
    example = re.sub(
        r"\{(\.[^{}]*(?:\{[^{}]*\}[^{}]*)*)\}", lambda m: re.sub(r"\.(\w+) = ", r"\1=", m.group(1)), example
    )
    example = re.sub(r"auto \[([^\]]*)\] =", r"\1 =", example)
    example = re.sub(r"\{\}", "None", example)
    example = re.sub(r"\{([^{}]*)\}", r"[\1]", example)
    example = re.sub(r"\w+::(\w+)", r'"\1"', example.replace("true", "True").replace("false", "False"))
    return f"{sentence}: {example}"


class PythonOp:
    def __init__(self, name, doc, module="volta"):
        self.name, self.doc, self.module, self.forms = name, python_doc(doc), module, []
        self.function = self.method = self.functional = False


def collect(ops, headers):
    """Every op of Python by name."""
    table = {}

    def add(name, form, doc, function, method, module="volta", functional=False):
        if not form.usable:
            return
        op = table.setdefault((module, name), PythonOp(name, doc, module))
        if all(form.signature(True) != known.signature(True) for known in op.forms):
            # max(x, other) before max(x, dim): a 0-d tensor of integers is taken for an index, too.
            tensors = [p.takes for p in form.parameters] == ["tensor", "tensor"]
            op.forms.insert(1 if tensors and len(op.forms) > 1 else len(op.forms), form)
        op.function, op.method = op.function or function, op.method or method
        op.functional = op.functional or functional

    def add_listed(name, op, call, parameters, method):
        pointwise = op["group"] == "pointwise"
        form = Form(name, op["result"], parameters, headers, f"volta::{call}", pointwise=pointwise)
        add(name, form, op["doc"], True, method and name not in PROPERTIES, functional=op["group"] in FUNCTIONAL)

    by_name = {}
    for op in ops:
        by_name.setdefault(op["name"], []).append(op)
        add_listed(op["name"], op, op["name"], op["parameters"], op["method"])
        if op["in_place"]:
            parameters = ["const Tensor& x"] + op["parameters"][1:]
            form = Form(op["name"], op["result"], parameters, headers, op["name"] + "_", in_place=True, pointwise=True)
            add(op["name"] + "_", form, op["doc"] + ", in place", False, True)
    for name, call, parameters in FORMS:
        add_listed(name, by_name.get(call, by_name[name])[0], call, parameters, True)
    for name, of in ALIASES.items():
        for op in by_name[of]:
            add_listed(name, op, of, op["parameters"], op["method"] and name not in table)
    for result, name, parameters in headers.declarations(
        "create.h", r"(?<![\w>] )\[\[nodiscard\]\] (?!explicit )([\w:<>]+) (\w+)ARGUMENTS;"
    ):
        if name not in BY_HAND:
            add(name, Form(name, result, split(parameters), headers, f"volta::{name}"), "Makes a tensor.", True, False)
    for name, parameters in headers.declarations("tensor.h", r"Tensor& (\w+_)ARGUMENTS &;"):
        form = Form(name, "Tensor", ["const Tensor& x"] + split(parameters), headers, name, in_place=True)
        add(name, form, "In place.", False, True)
    for name, parameters in headers.declarations("tensor.h", r"Tensor (new_\w+|std)ARGUMENTS const;"):
        form = Form(name, "Tensor", ["const Tensor& x"] + split(parameters), headers, "." + name)
        add(name, form, "As the function of this name, of the tensor's dtype and device.", False, True)
    for result, name, parameters in headers.declarations("nn/init.h", r"(Tensor|double) (\w+)ARGUMENTS;"):
        form = Form(name, result, split(parameters), headers, f"volta::nn::init::{name}")
        form.names[0] = "tensor" if form.names[0] == "input" else form.names[0]
        add(name, form, "Initialises the tensor in place.", True, False, module="volta.nn.init")
    for header, first in (
        ("optim/algorithms.h", "optim::Params params"),
        ("optim/schedule.h", "optim::Optimizer* optimizer"),
    ):
        for name, base in re.findall(r"class (\w+)(?: : public (\w+))? \{", headers.text[header]):
            if name + "Options" in headers.structs:
                parameters = [first, f"const {name}Options& options = {{}}"]
                form = Form(name, "", parameters, headers, f"optim::{name}")
                form.make = "ReduceLROnPlateau" if not base else "Scheduler" if "schedule" in header else "Optimizer"
                add(name, form, "", True, False, module="volta.optim")
    return table


def write_bindings(out, table, headers):
    used = sorted(
        {p for op in table.values() for f in op.forms for r in f.reads for p in re.findall(r"^(\w*Options) ", r)}
    )
    write = out.append
    write(
        "// Generated by python/generate.py from the list of ops and the public headers; do not edit.\n"
        '#include <volta/volta.h>\n\n#include "nn_objects.h"\n\nnamespace volta::python {\nnamespace {\n\n'
        "using namespace volta::nn::init;\nusing namespace volta::optim;\n\n"
    )
    for name in used:
        fields = headers.structs[name]
        bindings = ", ".join(f"f{i}" for i in range(len(fields)))
        # The binding of all members does not compile unless every one of them is known here.
        write(f"void read(Arguments& a, int at, {name}& o) {{\n  [[maybe_unused]] auto& [{bindings}] = o;\n")
        for i, f in enumerate(fields):
            write(f"  a.set(at + {i}, o.{f.name});\n")
        write("}\n")
    rows = []
    number = 0
    for op in table.values():
        overloads = []
        for form in op.forms:
            write(f"PyObject* call{number}(Arguments& a) {{ {form.body(headers.structs)} }}\n")
            parameters = ", ".join(
                f'{{"{n}", Takes::{p.takes}, {str(p.required).lower()}}}' for n, p in zip(form.names, form.parameters)
            )
            write(f"constexpr Parameter p{number}[] = {{{parameters}}};\n")
            overloads.append(
                f'{{p{number}, {len(form.parameters)}, {form.variadic()}, call{number}, "({form.signature()})"}}'
            )
            number += 1
        write(f"constexpr Overload o{len(rows)}[] = {{{', '.join(overloads)}}};\n")
        doc = op.doc.replace("\\", "\\\\").replace('"', '\\"')
        where = int(op.function) + 2 * int(op.method)
        rows.append(f'    {{"{op.name}", "{doc}", o{len(rows)}, {len(op.forms)}, {where}, "{op.module}"}},\n')
    write(
        "\n}  // namespace\n\nextern const Op op_table[];\nextern const int op_table_size;\nconst Op op_table[] = {\n"
    )
    out.extend(rows)
    write(f"}};\nconst int op_table_size = {len(rows)};\n\n}}  // namespace volta::python\n")


def write_stubs(template, table, headers):
    functions, methods, results, others = [], [], [], {"volta.nn.init": [], "volta.optim": []}
    for struct in sorted({f.result for op in table.values() for f in op.forms if f.result in headers.structs}):
        fields = headers.structs[struct]
        results.append(
            f"class {struct}(NamedTuple):\n"
            + "".join(f"    {f.name}: {'list[builtins.int]' if 'vector' in f.type else 'Tensor'}\n" for f in fields)
            + "\n"
        )
    for op in table.values():
        forms = [(form, spread) for form in op.forms for spread in (False, True) if not spread or form.variadic() >= 0]
        overload = "@overload\n" if len(forms) > 1 else ""
        for form, spread in forms:
            result = form.result_annotation()
            if op.function and op.name not in REPLACED:
                if form.make and op.name in WRITTEN:
                    continue
                if form.make:
                    base = {"ReduceLROnPlateau": "LRScheduler", "Scheduler": "LRScheduler"}.get(form.make, form.make)
                    others[op.module].append(
                        f"class {op.name}({base}):\n    def __init__(self, {form.signature(True)}) -> None: ...\n\n"
                    )
                    continue
                target = others[op.module] if op.module != "volta" else functions
                target.append(f"{overload}def {op.name}({form.signature(True, False, spread)}) -> {result}: ...\n")
            if op.method and op.name not in REPLACED_METHODS:
                head = "    " + overload.replace("\n", "\n    ")
                methods.append(f"{head}def {op.name}({form.signature(True, True, spread)}) -> {result}: ...\n")
    operators = [
        f"    def __{side}{name}__(self, other: Tensor | Number) -> {'Self' if side == 'i' else 'Tensor'}: ...\n"
        for name in OPERATORS
        for side in ("", "r", "i")
    ]
    text = template.read_text(encoding="utf-8").replace("    # OPERATORS\n", "".join(operators))
    return (
        text.replace("# RESULTS\n", "".join(results))
        .replace("    # METHODS\n", "".join(methods))
        .replace("# FUNCTIONS\n", "".join(functions))
    ), others


def save(path, text):
    """Leaves an unchanged file alone, so that nothing is compiled again for it."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def main():
    listed, include, output, template = map(pathlib.Path, sys.argv[1:])
    headers = Headers(include)
    table = collect(json.loads(listed.read_text(encoding="utf-8")), headers)
    bindings = []
    write_bindings(bindings, table, headers)
    save(output / "ops_generated.cpp", "".join(bindings))
    stubs, others = write_stubs(template / "_volta.pyi.in", table, headers)
    save(output / "_volta.pyi", stubs)
    save(
        output / "init.pyi",
        "import builtins\n\nfrom volta import Generator, Tensor\n\n" + "".join(others["volta.nn.init"]),
    )
    optim = (template / "optim.pyi.in").read_text(encoding="utf-8")
    save(output / "optim.pyi", optim + "".join(others["volta.optim"]))
    functional = sorted(op.name for op in table.values() if op.functional)
    save(output / "_functional_names.py", f'"""The functions of volta.nn.functional."""\n\nNAMES = {functional!r}\n')


if __name__ == "__main__":
    main()
