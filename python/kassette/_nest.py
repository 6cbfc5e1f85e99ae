"""Nests, as TensorFlow's functions take them: lists, tuples and dicts of each other, with tensors or values as leaves."""
import itertools

import numpy as np

from . import _core


def flatten(nest):
    """The leaves in order; those of a dict in the order of its sorted keys."""
    if isinstance(nest, dict):
        return [leaf for key in sorted(nest) for leaf in flatten(nest[key])]
    if isinstance(nest, (list, tuple)):
        return [leaf for part in nest for leaf in flatten(part)]
    return [nest]


def form(nest):
    """The nest with None as leaves."""
    return pack(nest, itertools.repeat(None))


def pack(nest, leaves):
    """What has the form of `nest`, with these leaves, an iterator."""
    if isinstance(nest, dict):
        packed = {key: pack(nest[key], leaves) for key in sorted(nest)}
        return type(nest)((key, packed[key]) for key in nest)
    if isinstance(nest, tuple) and hasattr(nest, "_fields"):
        return type(nest)(*(pack(part, leaves) for part in nest))
    if isinstance(nest, (list, tuple)):
        return type(nest)(pack(part, leaves) for part in nest)
    return next(leaves)


def _is_array(x):
    return x is None or isinstance(x, _core.Tensor) or (hasattr(x, "__array__") and not isinstance(x, np.generic)) or hasattr(x, "tocoo")


def _values(nest):
    """The values of a nest; a list of numbers is one value."""
    if isinstance(nest, dict):
        return [leaf for key in sorted(nest) for leaf in _values(nest[key])]
    if isinstance(nest, (list, tuple)):
        parts = [_values(part) for part in nest]
        if any(part != [given] if isinstance(given, (list, tuple, dict)) else _is_array(given) for part, given in zip(parts, nest)):
            return [leaf for part in parts for leaf in part]
    return [nest]


def _for_one(value, rank):
    """A value for a placeholder of that rank, which may stand in a list of its own."""
    if not isinstance(value, (list, tuple, dict)):
        return value
    leaves = flatten(value) if rank == 0 else _values(value)
    if len(leaves) == 1 and (isinstance(value, dict) or rank is None or getattr(leaves[0], "ndim", np.ndim(leaves[0])) == rank):
        return leaves[0]
    return value


class _AnotherForm(Exception):
    pass


def _in_form(nest, ranks, values):
    """The values for the leaves of a nest that has the same form as `values`, or a shorter one."""
    if isinstance(nest, dict):
        if not isinstance(values, dict):
            raise _AnotherForm
        missing = [key for key in nest if key not in values]
        if missing:
            raise ValueError(f"function: inputs: there is no value for {missing[0]!r}")
        return [leaf for key in sorted(nest) for leaf in _in_form(nest[key], ranks, values[key])]
    if isinstance(nest, (list, tuple)):
        if not isinstance(values, (list, tuple)) or len(values) < len(nest):
            raise _AnotherForm
        return [leaf for part, value in zip(nest, values) for leaf in _in_form(part, ranks, value)]
    return [_for_one(values, next(ranks))]


def values_for(inputs, ranks, values):
    """The values for placeholders in the form `inputs`, in order; `ranks` are theirs.

    They come in the form of `inputs`, or as a list. As with TensorFlow, what is left over is ignored.
    """
    try:
        return _in_form(inputs, iter(ranks), values)
    except _AnotherForm:
        found = [] if isinstance(values, (list, tuple, dict)) and not values else _values(values)[:len(ranks)]
    if len(found) < len(ranks):
        raise ValueError(f"function: {len(found)} value{'s' * (len(found) != 1)} for {len(ranks)} input{'s' * (len(ranks) != 1)}")
    return [_for_one(value, rank) for value, rank in zip(found, ranks)]
