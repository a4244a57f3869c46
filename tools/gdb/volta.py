"""Shows Volta's Tensor, Parameter, Buffer, Shape and DType in gdb: source this file, then `print x`.

A running program writes the text itself, through volta_debug_text; in a core file only addresses are known.
"""
import gdb


class ShapePrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        sizes = self.value["sizes_"]
        return "[" + ", ".join(str(int(sizes[i])) for i in range(int(self.value["rank_"]))) + "]"


class TensorPrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        name = gdb.types.get_basic_type(self.value.type).name.split("::")[-1]
        if self.value.address is None:
            return name
        try:
            call = "((const char* (*)(const void*))volta_debug_text)((const void*)%d)" % int(self.value.address)
            return name + " " + gdb.parse_and_eval(call).string("utf-8", "replace")
        except gdb.error:
            return "%s at %#x" % (name, int(self.value.address))


def build():
    import gdb.printing
    import gdb.types

    printers = gdb.printing.RegexpCollectionPrettyPrinter("volta")
    printers.add_printer("Shape", "^volta::Shape$", ShapePrinter)
    printers.add_printer("Tensor", "^volta::(Tensor|Indexed|nn::Parameter|nn::Buffer)$", TensorPrinter)
    return printers


import gdb.printing  # noqa: E402

gdb.printing.register_pretty_printer(gdb.current_objfile(), build(), replace=True)
