"""The signatures of the functions of _core, and the line that says which argument does not fit."""
import functools
import inspect
import operator

from . import _core


@functools.lru_cache(None)
def signature(function):
    """The signature of a function of _core; annotations are the kinds of arguments that CHECKS lists."""
    text, _, defaults = function.__nb_signature__[0]
    parameters, place = [], inspect.Parameter.POSITIONAL_OR_KEYWORD
    for parameter in text[text.index("(") + 1:text.index(") ->")].split(", "):
        name, _, kind = parameter.partition(": ")
        kind, _, index = kind.partition(" = \\")
        default = defaults[int(index)] if index else inspect.Parameter.empty
        if name == "*":
            place = inspect.Parameter.KEYWORD_ONLY
        elif name:
            parameters.append(inspect.Parameter(name, place, default=default, annotation=kind))
    return inspect.Signature(parameters)


def _wants(what, fits):
    def check(x):
        if not fits(x):
            raise TypeError(what + " is expected, not " + ("None" if x is None else type(x).__name__))
    return check


def _has(conversion):
    def fits(x):
        try:
            conversion(x)
        except (TypeError, ValueError, OverflowError):
            return False
        return True
    return fits


CHECKS = {
    "Value": _core.check_value, "Shape": _core.check_shape, "Text": _core.check_text, "DType": _core.check_dtype, "list": _core.check_tensors,
    "Tensor": _wants("a tensor", lambda x: isinstance(x, _core.Tensor)), "bool": _wants("True or False", lambda x: isinstance(x, bool)),
    "Number": _core.check_number, "Integer": _core.check_integer,
    "int": _wants("an integer of 32 bits", _has(lambda x: operator.index(x).to_bytes(4, "big", signed=True))), "float": _wants("a number", _has(float)),
    "collections.abc.Callable": _wants("a function", callable),
}


def explain(function, error, args, kwargs):
    """The line for a call of function with these arguments that ended with that error; None where none of them is at fault."""
    if error.startswith(function.__name__ + ": "):
        return None
    try:
        given = signature(function).bind(*args, **kwargs).arguments
    except TypeError as e:
        return f"{function.__name__}: {e}"
    for name, value in given.items():
        kind, _, none = signature(function).parameters[name].annotation.partition(" | ")
        if value is None and none:
            continue
        try:
            _wants("a value", lambda x: x is not None)(value)
            CHECKS.get(kind, lambda x: None)(value)
        except (TypeError, ValueError, NotImplementedError) as e:
            return f"{function.__name__}: {name}: {e}"
    return None
