"""python/make_numpy.py INCLUDE OUTPUT - writes the bindings of namespace np, from what its headers in INCLUDE declare.

python/make_numpy.py INCLUDE --missing lists the functions that get none: those with a type that TYPES does not have, and overloads that are not one function in
Python, unless BY_HAND names them; and the names in BY_HAND that are not needed.

An options struct becomes arguments by name, an overload without options gives their place to the first of them, and overloads for an
integer and for an operand become one function. The comment of a function is its docstring.
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "docs" / "make"))
import headers  # noqa: E402

# How an argument of a type in C++ is taken from Python: the type of the parameter, and the expression that gives the argument. NAME is its name, WHAT the
# beginning of a line about it.
TYPES = {
    "Operand": ("Value&", "NAME.operand()"),
    "Tensor": ("Value&", "array_of(NAME)"),
    "Tensors": ("nb::handle", "to_arrays(NAME, WHAT)"),
    "Signal": ("nb::handle", "to_signal(NAME, WHAT)"),
    "Dims": ("const Sizes&", "NAME.dims()"),
    "Axes": ("nb::handle", "to_axes(NAME, WHAT)"),
    "Scalar": ("nb::handle", "to_scalar(NAME, WHAT)"),
    "std::int64_t": ("nb::handle", "to_int(NAME, WHAT)"),
    "int": ("const Integer&", "NAME"),
    "DType": ("DType", "NAME"),
    "Name": ("const Label&", "NAME.name()"),
    "bool": ("bool", "NAME"),
    "double": ("double", "NAME"),
}
INTEGERS = {"int", "std::int64_t"}

# Functions of python/kassette/numpy.py. Where they have several overloads, that calls these by their number: _core.numpy._tensordot_0.
BY_HAND = {"apply_over_axes", "block", "broadcast_shapes", "can_cast", "fromfunction", "isdtype", "piecewise", "promote_types", "result_type", "tensordot"}

# The names of arguments by which the array API standard calls them.
RENAMED = {"full": {"value": "fill_value"}, "full_like": {"value": "fill_value"}, "tile": {"times": "repetitions"}, "repeat": {"times": "repeats"}}

# The fields of results that the standard spells otherwise.
FIELDS = {"QrResult": ("Q", "R"), "SvdResult": ("U", "S", "Vh")}

# Numbers and lists in these places are arrays by themselves: they do not take the dtype of another argument.
ALONE = {"condition", "index", "indices", "repeats", "times", "width", "weights"}
# Names that may be None.
NO_NAME = {"window"}
# Of these numbers C++ finds the dtype, from exact values.
AS_GIVEN = {"arange", "linspace", "logspace", "geomspace", "full", "full_like"}


class NotMapped(Exception):
    pass


class Parameter:
    def __init__(self, of_type, name, default):
        self.type, self.name, self.default = of_type, name, default
        self.field = None   # of an options struct: its name there


def split(text, sign=","):
    """The parts of a text between signs that stand in no bracket."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([{<") - (c in ")]}>")
        if c == sign and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts if part.strip()]


def parameter_of(text):
    declaration, *default = split(text, "=")
    match = re.fullmatch(r"(?:const )?([\w:]+)(?: ?&)? ?(\w+)(?:\{.*\})?", declaration)
    if not match:
        raise NotMapped(f"'{declaration}'")
    type_name = "Operand" if match[1] == "KeptOperand" else match[1]
    return Parameter(type_name, match[2], default[0] if default else None)


def fields_of(entry):
    """The members of a struct. Those declared in one line share its code, `Operand min = None, max = None;`."""
    fields, seen = [], set()
    for member in entry.members:
        if member.kind != "variable" or member.code in seen:
            continue
        seen.add(member.code)
        first, *others = split(member.code.rstrip(";"))
        fields.append(parameter_of(first))
        for other in others:
            fields.append(parameter_of(f"{fields[-1].type} {other}"))
    return fields


class Signature:
    def __init__(self, text, structs):
        match = re.fullmatch(r"(?:template <[^>]*> )?([\w:]+) \w+\((.*)\)", text)
        if not match:
            raise NotMapped(f"'{text}'")
        self.result = match[1]
        self.parameters = [parameter_of(p) for p in split(match[2])]
        self.options = None
        last = self.parameters[-1].type if self.parameters else None
        if last in structs and any(f.type == "Named" for f in fields_of(structs[last])):
            self.options = structs[last]
            self.parameters.pop()


class Binding:
    """A function of Python: its parameters, of which those from `named` on are given by name, and what is called."""

    def __init__(self, function, structs, signatures, name):
        self.function, self.structs, self.name = function, structs, name
        self.choice = None   # the place of the parameter whose type says which overload is meant, and both signatures
        with_options = [s for s in signatures if s.options]
        if with_options:
            self.merge(with_options[0], [s for s in signatures if not s.options])
        elif len(signatures) == 1:
            self.signature, self.parameters = signatures[0], signatures[0].parameters
            self.named = len(self.parameters)
        else:
            self.choose(signatures)
        for p in self.parameters:
            if p.type not in TYPES:
                raise NotMapped(f"the type {p.type}")
            p.name = RENAMED.get(function.name, {}).get(p.name, p.name)

    def merge(self, signature, others):
        self.signature = signature
        fields = [f for f in fields_of(signature.options) if f.type != "Named"]
        for f in fields:
            f.field = f.name
        by_name = {f.name: f for f in fields}
        placed = []
        for other in others:
            own = [p.name for p in other.parameters]
            if own[:len(signature.parameters)] != [p.name for p in signature.parameters]:
                raise NotMapped("overloads with other arguments")
            further = other.parameters[len(signature.parameters):]
            if any(p.name not in by_name for p in further):
                raise NotMapped("an overload with an argument that the options do not have")
            for p in further:
                if p.default is not None:
                    by_name[p.name].default = p.default
            placed = max(placed, [p.name for p in further], key=len)
        self.parameters = signature.parameters + [by_name[n] for n in placed] + [f for f in fields if f.name not in placed]
        self.named = len(signature.parameters) + len(placed)

    def choose(self, signatures):
        if len(signatures) != 2 or len(signatures[0].parameters) != len(signatures[1].parameters):
            raise NotMapped("overloads")
        differ = [i for i, (a, b) in enumerate(zip(*(s.parameters for s in signatures))) if a.type != b.type]
        types = {s.parameters[differ[0]].type for s in signatures} if len(differ) == 1 else set()
        if "Operand" not in types or not types & INTEGERS:
            raise NotMapped("overloads")
        operand, integer = sorted(signatures, key=lambda s: s.parameters[differ[0]].type != "Operand")
        self.choice = differ[0], integer
        self.signature, self.parameters, self.named = operand, operand.parameters, len(operand.parameters)

    # ---- C++ ------------------------------------------------------------------------------------------------------------------------

    def expression(self, p, of_type=None):
        return TYPES[of_type or p.type][1].replace("NAME", p.name).replace("WHAT", f'"{self.name}: {p.name}"')

    @staticmethod
    def is_converted(p):
        """Whether a value is made of it before Python's lock is let go."""
        return not p.field and (TYPES[p.type][0] == "nb::handle" or p.type == "Tensor")

    def call(self, signature=None):
        chosen = signature or self.signature
        arguments = []
        for at, p in enumerate(self.parameters):
            if p.field:
                continue
            if signature and at == self.choice[0]:
                arguments.append(f'static_cast<{signature.parameters[at].type}>(to_int({p.name}, "{self.name}: {p.name}"))')
            elif self.choice and at == self.choice[0]:
                arguments.append(f"{p.name}_value.operand()")
            else:
                arguments.append(p.name + "_value" if self.is_converted(p) else self.expression(p))
        if chosen.options:
            arguments.append("options")
        return f"{'::'.join(['kassette', *self.function.scopes[1:], self.function.name])}({', '.join(arguments)})"

    def result(self, name):
        struct = self.structs.get(self.signature.result)
        if self.signature.result in ("Tensor", "Tensors"):
            return f"to_array({name})"
        if self.signature.result in ("bool", "double", "std::int64_t", "int"):
            return f"nb::cast({name})"
        if not struct:
            raise NotMapped(f"the result {self.signature.result}")
        fields = fields_of(struct)
        if any(f.type not in ("Tensor", "Tensors") for f in fields):
            raise NotMapped(f"the result {self.signature.result}")
        names = ", ".join(f'"{n}"' for n in FIELDS.get(struct.name, [f.name for f in fields]))
        return f'to_record("{struct.name}", {{{names}}}, {{{", ".join(f"to_array({name}.{f.name})" for f in fields)}}})'

    def default(self, p):
        none = ".none()" if p.type == "Axes" or p.default == "None" or p.type == "Name" and p.name in NO_NAME else ""
        if p.default is None:
            return f'arg("{p.name}"){none}'
        value = "nb::none()" if p.default == "None" else p.default
        if value.startswith("{"):
            value = f"nb::make_tuple({value[1:-1]})"
        return f'arg("{p.name}"){none} = {value}'

    def text(self):
        lines = ["{"]
        values = [p for p in self.parameters if p.type == "Operand" and not (self.choice and p is self.parameters[self.choice[0]])]
        together = [p.name for p in values if p.name not in ALONE]
        if self.function.name not in AS_GIVEN:
            if together:
                lines.append(f"  settle({{{', '.join('&' + n for n in together)}}});")
            lines += [f"  settle({{&{p.name}}});" for p in values if p.name in ALONE]
        converted = [p for p in self.parameters if self.is_converted(p)]
        lines += [f"  const auto {p.name}_value = {self.expression(p)};" for p in converted]
        held = [p.name + "_value" for p in converted if p.type in ("Tensors", "Signal")]
        if self.signature.options:
            lines.append(f"  {'::'.join(['kassette', *self.signature.options.scopes[1:], self.signature.options.name])} options;")
            lines += [f"  options.{p.field} = {self.expression(p)};" for p in self.parameters if p.field]
        computes = f"is_large({', '.join([p.name for p in values] + held)})" if values or held else "false"
        if self.choice:
            p = self.parameters[self.choice[0]]
            lines.append(f"  if (is_int({p.name})) {{")
            lines.append(f"    const auto result = compute({computes}, [&] {{ return {self.call(self.choice[1])}; }});")
            lines.append(f"    return {self.result('result')};")
            lines.append("  }")
            lines.append(f'  Value {p.name}_value({p.name}, "{self.name}: {p.name}");')
            lines.append(f"  settle({{&{p.name}_value}});")
        if self.signature.result == "void":
            lines += [f"  {self.call()};", "  return nb::none();"]
        else:
            lines.append(f"  const auto result = compute({computes}, [&] {{ return {self.call()}; }});")
            lines.append(f"  return {self.result('result')};")
        taken = ", ".join(("nb::handle" if self.choice and at == self.choice[0] else TYPES[p.type][0]) + " " + p.name for at, p in enumerate(self.parameters))
        arguments = [self.default(p) for p in self.parameters]
        if self.named < len(arguments):
            arguments.insert(self.named, "nb::kw_only()")
        comment = self.function.comment.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        name = self.name
        return (f'  m.def("{name}", []({taken}) -> nb::object ' + "\n  ".join(lines) + "\n  }" + "".join(", " + a for a in arguments) + f', "{comment}");')


def functions_of(include):
    """All functions of namespace np and of those within it, with the structs by their names. The overloads of one name may stand in several headers. Those
    that <kassette/numpy.h> does not include are not for Python: they take functions."""
    functions, structs = {}, {}
    for header in headers.read_headers(include):
        if not header.name.startswith("numpy"):
            continue
        for entry in header.entries:
            if entry.scopes[:2] != ["kassette", "numpy"]:
                continue
            if entry.kind == "class" and not entry.forward:
                structs[entry.name] = entry
            if entry.kind == "function" and not entry.name.startswith(("operator", "KASSETTE_")):
                known = functions.setdefault((*entry.scopes[2:], entry.name), entry)
                if known is not entry:
                    known.signatures += entry.signatures
    return functions, structs


def bindings_of(include):
    """The texts of the bindings by their module, and the functions without one, with the reason."""
    functions, structs = functions_of(include)
    texts, missing = {}, {}
    for path, function in functions.items():
        module, name = path[:-1], path[-1].rstrip("_")
        try:
            signatures = [Signature(text, structs) for text in function.signatures]
            if name in BY_HAND:
                if len(signatures) > 1:
                    texts.setdefault(module, []).extend(Binding(function, structs, [s], f"_{name}_{i}").text() for i, s in enumerate(signatures))
                continue
            texts.setdefault(module, []).append(Binding(function, structs, signatures, name).text())
        except NotMapped as reason:
            if name not in BY_HAND:
                missing[".".join((*module, name))] = str(reason)
    for name in BY_HAND - {path[-1].rstrip("_") for path in functions}:
        missing[name] = "BY_HAND names it, and there is no such function"
    return texts, missing


def main():
    include = pathlib.Path(sys.argv[1]).resolve()
    texts, missing = bindings_of(include.parent)
    if sys.argv[2] == "--missing":
        for name, reason in missing.items():
            print(f"{name}: {reason}")
        sys.exit(1 if missing else 0)
    out = ["// Written by python/make_numpy.py.", "#include <kassette/numpy.h>", "", '#include "arrays.h"', "", "namespace kassette {", "namespace python {",
           "", "using nb::arg;", ""]
    for module in sorted(texts):
        out += [f"static void bind{'_'.join(('', *module))}_functions(nb::module_& m) {{", *texts[module], "}", ""]
    out.append("void bind_numpy(nb::module_& core) {")
    out.append('  nb::module_ m = core.def_submodule("numpy");')
    for module in sorted(texts):
        target = "m"
        if module:
            out.append(f'  nb::module_ {"_".join(module)} = m.def_submodule("{module[-1]}");')
            target = "_".join(module)
        out.append(f"  bind{'_'.join(('', *module))}_functions({target});")
        out.append(f"  explain_arguments({target});")
    out += ["}", "", "}  // namespace python", "}  // namespace kassette", ""]
    pathlib.Path(sys.argv[2]).write_text("\n".join(out))


if __name__ == "__main__":
    main()
