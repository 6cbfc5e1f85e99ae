#!/usr/bin/env python3
"""tests/data/make_keras_cases.py - writes keras_cases.txt: what tf.keras.backend makes of given tensors, and its gradients.

    python3 tests/data/make_keras_cases.py > tests/data/keras_cases.txt      (needs tensorflow 2.15; any CPU build)

A number as argument is another seed: other cases, to try. Further numbers are the sizes of at_random.

A line is a case:   [~note] function [name=argument ...] tensor ... -> result [| gradient ...]
A tensor is dtype[shape]=elements; a size of ? is unknown. An argument is a number, [a list] or None. The result is a tensor, or
the class of the error, as ValueError!. After | stands for each float input its gradient, or - where there is no path; the
cotangent of element i is 1 + 0.5 (i mod 3). A line that starts with "static" has placeholders, and the shape that is known of
the result. ~note: the specification decides otherwise; tests/nn_backend/keras_cases_test.cpp says what.
Inputs are multiples of 1/8 or named edges, so that every dtype holds them exactly.
"""
import operator
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import tensorflow as tf
from keras.src import backend as K   # what tensorflow.keras.backend is, and logsumexp, which it does not list

rng = np.random.RandomState(int(sys.argv[1]) if len(sys.argv) > 1 else 20151127)
nan, inf = float("nan"), float("inf")
FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTS = ["int32", "int64", "int8", "uint8", "int16", "uint16"]
SHORT = {"float32": "f4", "float64": "f8", "float16": "f2", "bfloat16": "b2", "int8": "i1", "int16": "i2", "int32": "i4",
         "int64": "i8", "uint8": "u1", "uint16": "u2", "bool": "b1"}
DIGITS = {"float64": 12, "float32": 7, "float16": 5, "bfloat16": 4}


# ---- text -------------------------------------------------------------------------------------------------------------
def number(v, digits=17):
    s = "%.*g" % (digits, v)
    if s.startswith("0."):
        s = s[1:]
    elif s.startswith("-0."):
        s = "-" + s[2:]
    return s.replace("e-0", "e-").replace("e+", "e")


def tensor_text(t, exact=False):
    t = tf.convert_to_tensor(t)
    name = t.dtype.name
    values = t.numpy().astype(np.float64 if t.dtype.is_floating else np.int64).ravel()
    if t.dtype.is_floating:
        elements = [number(v, 17 if exact else DIGITS[name]) for v in values]
    else:
        elements = [str(v) for v in values]
    return "%s[%s]=%s" % (SHORT[name], ",".join(map(str, t.shape)), ",".join(elements))


def argument_text(v):
    if v is None:
        return "None"
    if isinstance(v, (list, tuple)):
        return "[" + ",".join(argument_text(e) for e in v) + "]"
    if isinstance(v, bool):
        return str(int(v))
    return repr(v)


def as_tuple(n):
    return (n,) if isinstance(n, int) else tuple(n)


# ---- running ----------------------------------------------------------------------------------------------------------
def second(args, ts):
    return ts[1] if len(ts) > 1 else args["y"]


def bound(args, ts, name):
    """A bound of clip is an argument or one of the tensors."""
    if name in args:
        return args[name]
    return ts[1] if name == "min_value" else ts[-1]


def categorical_crossentropy(ts, from_logits=False, axis=-1):
    rank = len(ts[1].shape)   # from logits an axis below -1 fails in TensorFlow
    return K.categorical_crossentropy(*ts, from_logits=from_logits, axis=axis + rank if -rank <= axis < -1 else axis)


def binary_crossentropy(ts, from_logits=False, epsilon_twice=False):
    """That of Keras 2.2.5 (specification 2.16); 2.15 adds epsilon inside the logarithms too."""
    target, output = ts
    if from_logits or epsilon_twice:
        return K.binary_crossentropy(target, output, from_logits)
    epsilon = tf.constant(K.epsilon(), output.dtype)
    output = tf.clip_by_value(output, epsilon, 1 - epsilon)
    return tf.nn.sigmoid_cross_entropy_with_logits(target, tf.math.log(output / (1 - output)))


FUNCTIONS = {
    **{name: (lambda f: lambda ts, **a: f(ts[0]))(getattr(K, name)) for name in
       "square abs sqrt exp log round sign sin cos softplus softsign sigmoid hard_sigmoid tanh transpose flatten "
       "batch_flatten".split()},
    **{name: (lambda f: lambda ts, **a: f(ts[0], second(a, ts)))(getattr(K, name)) for name in
       "maximum minimum equal not_equal greater greater_equal less less_equal".split()},
    **{name: (lambda f: lambda ts, **a: f(ts[0], **a))(getattr(K, name)) for name in
       "max min sum prod mean var std any all argmax argmin logsumexp cumsum cumprod relu elu l2_normalize reshape "
       "repeat_elements repeat expand_dims squeeze reverse one_hot".split()},
    **{name: (lambda f: lambda ts, **a: f(ts[0], second(a, ts)))(f) for name, f in
       {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
        "floor_divide": operator.floordiv, "remainder": operator.mod, "and": operator.and_, "or": operator.or_}.items()},
    "negative": lambda ts: -ts[0],
    "not": lambda ts: ~ts[0],
    "pow": lambda ts, **a: K.pow(ts[0], second(a, ts)),
    "clip": lambda ts, **a: K.clip(ts[0], bound(a, ts, "min_value"), bound(a, ts, "max_value")),
    "permute_dimensions": lambda ts, pattern: K.permute_dimensions(ts[0], pattern),
    # That of 2.3 puts ones before a short n.
    "tile": lambda ts, n: K.tile(ts[0], (1,) * (len(ts[0].shape) - len(as_tuple(n))) + as_tuple(n)),
    # That of 2.15 refuses vectors; that of 2.3 is tf.nn.softmax.
    "softmax": lambda ts, **a: tf.nn.softmax(ts[0], **a) if ts[0].shape.rank in (0, 1) else K.softmax(ts[0], **a),
    "slice": lambda ts, start, size: tf.slice(ts[0], start, size),  # 2.15 has no K.slice; that of 2.3 is tf.slice
    "concatenate": lambda ts, **a: K.concatenate(ts, **a),
    "stack": lambda ts, **a: K.stack(ts, **a),
    "dot": lambda ts: K.dot(*ts),
    "batch_dot": lambda ts, **a: K.batch_dot(*ts, **a),
    "gather": lambda ts: K.gather(*ts),
    "categorical_crossentropy": categorical_crossentropy,
    "sparse_categorical_crossentropy": lambda ts, **a: K.sparse_categorical_crossentropy(*ts, **a),
    "binary_crossentropy": binary_crossentropy,
    "in_top_k": lambda ts, k: K.in_top_k(*ts, k),
}

seen, wrong = set(), []


def emit(line):
    if line not in seen:
        seen.add(line)
        print(line)


def head_text(fn, args, tensors, note=None):
    words = ["~" + note] if note else []
    return " ".join(words + [fn] + ["%s=%s" % (k, argument_text(v)) for k, v in args.items()] + tensors)


def case(fn, *arrays, note=None, error=None, **args):
    ts = [a if tf.is_tensor(a) else tf.constant(a) for a in arrays]
    head = head_text(fn, args, [tensor_text(t, exact=True) for t in ts], note)
    try:
        floats = [t for t in ts if t.dtype.is_floating]
        with tf.GradientTape() as tape:
            for t in floats:
                tape.watch(t)
            y = tf.convert_to_tensor(FUNCTIONS[fn](ts, **args))
        line = head + " -> " + tensor_text(y)
        if y.dtype.is_floating and floats:
            w = tf.cast(tf.reshape(1 + 0.5 * tf.cast(tf.range(tf.size(y)) % 3, tf.float64), tf.shape(y)), y.dtype)
            try:
                grads = tape.gradient(y, floats, output_gradients=w)
            except Exception as e:   # no gradient of this op in this dtype
                raise RuntimeError("no gradient of " + head) from e
            line += " | " + " ".join("-" if g is None else tensor_text(g) for g in map(dense, grads))
    except Exception as e:
        if error is None:
            wrong.append("%s: %s" % (head, str(e.__cause__ or e).split("\n")[0]))
        return emit("%s -> %s!" % (head, error))
    if error is not None:
        # TensorFlow gives something although the specification refuses it.
        if not note:
            wrong.append("not refused: " + line)
        return emit("%s -> %s!" % (head, error))
    emit(line)


def by_numpy(fn, y, *arrays, **args):
    """The value that NumPy gives, where the specification asks for that."""
    emit(head_text(fn, args, [tensor_text(t, exact=True) for t in arrays]) + " -> " + tensor_text(y))


def refused(fn, *arrays, error, **args):
    """The specification's error, TensorFlow not asked."""
    emit("%s -> %s!" % (head_text(fn, args, [tensor_text(t, exact=True) for t in arrays]), error))


def dense(g):
    return tf.convert_to_tensor(g) if isinstance(g, tf.IndexedSlices) else g


def static(fn, *shapes, note=None, **args):
    """shapes: (dtype, shape) each; None is an unknown size, a shape of None an unknown rank."""
    texts = ["%s[%s]" % (SHORT[d], "..." if s is None else ",".join("?" if n is None else str(n) for n in s)) for d, s in shapes]
    with tf.Graph().as_default():
        ts = [tf.compat.v1.placeholder(d, s) for d, s in shapes]
        y = FUNCTIONS[fn](ts, **args)
        shape = y.shape
    known = "..." if shape.rank is None else ",".join("?" if n is None else str(n) for n in shape.as_list())
    emit("%s -> %s[%s]" % ("static " + head_text(fn, args, texts, note), SHORT[y.dtype.name], known))


# ---- values -----------------------------------------------------------------------------------------------------------
def random(shape, dtype="float32", low=-2, high=2):
    if dtype == "bool":
        return tf.constant(rng.randint(0, 2, shape).astype(bool))
    if tf.as_dtype(dtype).is_integer:
        low = max(int(low * 3), 0 if dtype[0] == "u" else int(low * 3))
        return tf.constant(rng.randint(low, int(high * 3) + 1, shape), dtype)
    return tf.cast(tf.constant(rng.randint(int(low * 8), int(high * 8) + 1, shape) / 8.0), dtype)


def chosen(values, shape, dtype="float32"):
    return tf.cast(tf.constant(np.asarray(values, "float64")[rng.randint(0, len(values), shape)]), dtype)


def values(v, dtype="float32", shape=None):
    t = tf.cast(tf.constant(np.asarray(v, "float64")), dtype) if dtype != "int64" else tf.constant(v, dtype)
    return t if shape is None else tf.reshape(t, shape)


SHAPES = [(), (3,), (1,), (2, 3), (0, 3), (1, 1), (2, 1, 3), (1, 2, 1, 1, 2, 1, 1, 2)]
EDGES = [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 6, nan, inf, -inf, 0.125, 30, -30, 100, -100]
WIDE = EDGES + [1e-30, -1e-30, 1e30, -1e30, 1e-3, 88, -88]


def pick(items):
    return items[rng.randint(len(items))]


# ---- families ---------------------------------------------------------------------------------------------------------
def elementwise():
    for fn in "square abs sqrt exp log round sign sin cos softplus softsign sigmoid hard_sigmoid tanh relu elu".split():
        keeps_integers = fn in ("square", "abs", "round", "sign", "relu")
        for dtype in FLOATS:
            edges = WIDE if dtype in ("float32", "float64") else EDGES
            if fn == "relu":   # Eigen's vectors and its scalar tail differ on NaN
                edges = [v for v in edges if v == v]
            if fn in ("sqrt", "elu"):   # their gradients at NaN are not in the documents
                case_of_values(fn, values([nan], dtype))
                # In halves it gives -0 and -inf at -0.
                edges = [v for v in edges if v == v and not (fn == "sqrt" and dtype[-2:] == "16" and str(v) == "-0.0")]
            if fn in ("sin", "cos"):
                edges = [v for v in edges if not abs(v) > 1e4 or v == inf]
            if dtype == "bfloat16" and fn in ("softplus", "softsign", "round", "sin", "cos"):
                edges = [v for v in edges if v == v]
            case(fn, values(edges, dtype))
            case(fn, random((2, 3), dtype))
        for shape in SHAPES:
            case(fn, random(shape))
        for dtype in INTS:
            if keeps_integers and (dtype in ("int32", "int64") or fn == "relu"):
                case(fn, random((2, 3), dtype))
            elif not keeps_integers and dtype in ("int32", "uint8"):
                case(fn, random((2, 3), dtype), error="TypeError")
        case(fn, random((2,), "bool"), error="TypeError")
    case("square", values([46341, -2147483648, 65536, 3], "int32"))
    case("abs", tf.constant([-2147483648, -1, 5], tf.int32))
    for alpha in (0.0, 0.5, 1.0, 2.0, -1.0):
        case("elu", values([-3, -1, -0.0, 0, 1, 100], "float32"), alpha=alpha)
        case("elu", random((2, 3), "float64"), alpha=alpha)
        case("relu", values([-3, -1, -0.0, 0, 1, 100, -inf, inf] if alpha == 0.5 else [-3, -1, 0, 1]), alpha=alpha)
    relus = [(0., None, 0.), (.1, None, 0.), (0., 5., 0.), (0., None, .8), (.1, 5., 0.), (.1, None, .8), (0., 5., .8), (.1, 5., .8),
             (.1, 0., .8), (.1, 5., -2.8), (.1, 9., .8), (0., 6., 0.), (.5, 6., 0.), (2., None, -1.), (-.5, 1., .5), (0., 0., 0.),
             (0., None, -1.), (0.25, 2.0, 1.0)]
    for alpha, top, threshold in relus:
        args = {"alpha": alpha, "max_value": top, "threshold": threshold}
        for dtype in ("float32", "float64"):
            # 6 itself is the dedicated op's; x == threshold is below.
            grid = [v for v in (-4, -2.75, -1, -0.625, 0, .5, .75, 1.25, 5, 5.75, 6.25, 7) if v != threshold]
            note = "relu_of_float64_and_threshold" if dtype == "float64" and threshold else None
            if dtype == "float64" and top is None:
                args["alpha"] = round(alpha * 8) / 8   # TensorFlow's leaky_relu has a float32 alpha
            if not note:
                case("relu", values(grid, dtype), **args)
        case("relu", random((2, 3)), **args) if threshold != int(threshold) and threshold != .5 else None
    case("relu", values([1.0]), threshold=1.0, note="relu_at_its_threshold")
    case("relu", values([-0.5]), threshold=-0.5, alpha=0.25, note="relu_at_its_threshold")
    case("relu", values([-inf, inf]), threshold=0.5, note="relu_of_infinity_below_a_threshold")
    case("relu", values([0.0, 6.0, 3.0]), max_value=6.0, note="relu_gradient_at_six")
    case("relu", values([0.0, 5.0, 3.0]), max_value=5.0)
    refused("relu", values([2, -1], "int32"), alpha=0.1, error="TypeError")   # TensorFlow gives floats

    pairs = [((2, 3), (2, 3)), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 1), (1, 3)), ((2, 3), ()), ((), (2, 3)), ((), ()), ((0, 3), (3,)),
             ((2, 1, 3), (2, 1)), ((1, 2, 1, 1, 2, 1, 1, 1), (2, 1)), ((1,), (0,))]
    wrong = [((2, 3), (2,)), ((2, 3), (3, 2)), ((4,), (3,))]
    for fn in "maximum minimum equal not_equal greater greater_equal less less_equal pow".split():
        for a, b in pairs:
            dtype = pick(FLOATS[:2])
            x, y = (random(a, dtype), random(b, dtype)) if fn != "pow" else (random(a, dtype, 0.125, 2), random(b, dtype))
            case(fn, x, y)
        for dtype in ("int32", "int64", "uint8", "int8"):
            if fn == "pow":
                if dtype in ("int32", "int64"):
                    case(fn, random((2, 3), dtype), random((3,), dtype, 0, 2))
            else:
                case(fn, random((2, 3), dtype), random((3,), dtype))
        if fn in ("equal", "not_equal"):
            case(fn, random((2, 3), "bool"), random((3,), "bool"))
        else:
            case(fn, random((2, 3), "bool"), random((3,), "bool"), error="TypeError")
        for a, b in wrong:
            if fn in ("equal", "not_equal"):   # TensorFlow answers False
                case(fn, random(a), random(b), error="ValueError", note="equal_of_shapes_that_differ")
            else:
                case(fn, random(a), random(b), error="ValueError")
        case(fn, random((3,)), random((3,), "float64"), error="TypeError")
        case(fn, random((3,)), random((3,), "int32"), error="TypeError")
        case(fn, random((3,), "int32"), y=1.5, error="TypeError")
        case(fn, random((2, 3), pick(FLOATS[:2]), 0.25 if fn == "pow" else -2), y=1.5)
        case(fn, random((2, 3), "float32", 0.25 if fn == "pow" else -2), y=1)
        case(fn, random((2, 3), "int32"), y=1)
    grid = [-inf, -2, -0.0, 0, 1, 1.5, inf]
    x, y = [np.ravel(v) for v in np.meshgrid(grid, grid)]
    for fn in "maximum minimum equal not_equal greater greater_equal less less_equal".split():
        case(fn, values(x), values(y))
        if fn not in ("maximum", "minimum"):
            case(fn, values([nan, nan, 1, inf]), values([nan, 1, nan, nan]))
    case("pow", values([-2, -2, -2, 2, 2, 4, 1, 0.5]), values([2, 3, -1, 0.5, -1.5, 0, 7, 3]))
    case("pow", values([0, 0, 0, 0]), values([2, 1, 0.5, 3]))
    case_of_values("pow", values([-8, -1]), values([1 / 2, 1.5]))
    case("pow", values([-8, -1]), values([1 / 2, 1.5]), note="pow_gradient_of_a_fraction_of_a_negative")
    case("pow", values([0.0, -0.0]), values([0, 0]), note="pow_of_zero_to_zero")
    case("pow", values([0, 2, inf, -inf, nan, 1, nan]), values([-1, inf, 2, 3, 1, nan, 0]), note="pow_gradient_at_infinity")
    case("pow", values([3, -2, 0], "int32"), values([0, 3, 0], "int32"))
    case("pow", values([3], "int32"), values([-1], "int32"), error="ValueError")
    for a in (2, 3, 1, 0.5, -1, 2.5, 4):
        case("pow", random((2, 3), "float32", 0.25), y=a)
    for a in (2, 3, 1):
        case("pow", values([-2, -1, 0, 1, 2]), y=a)

    # clip: numbers, None, tensors
    for dtype in FLOATS:
        case("clip", values([-1, 0, .5, 1, 2], dtype), min_value=0, max_value=1)
    bounds = [(0, 1), (-0.5, 0.5), (0.25, None), (None, 0.25), (None, None), (1.0, -1.0), (0.5, 0.5), (-inf, 1)]
    for low, high in bounds:
        for shape in [(2, 3), (), (0, 3)]:
            case("clip", random(shape), min_value=low, max_value=high)
        case("clip", values([-inf, -2, 2, inf]), min_value=low, max_value=high)
    case("clip", values([-3, 0, 2, 9], "int32"), min_value=-1, max_value=5)
    case("clip", values([nan]), min_value=0, max_value=1)
    for _ in range(6):
        low = random((2, 3))
        case("clip", random((2, 3)), low, low + 1)
        case("clip", random((2, 3)), random((3,)), max_value=1.5)
        case("clip", random((2, 3)), random((2, 1)), min_value=-0.5)
    case("clip", values([-1, 0, .5, 1, 2, 3, 4]), values([0.] * 7), values([1., 1, 1, 1, 1, 3, 5]))
    case("clip", values([0.5, 3, -3]), values([1.0]), values([-1.0]))
    case("clip", random((3,)), random((2, 3)), max_value=5.0, error="ValueError")
    case("clip", values([1, 2], "int32"), min_value=0.5, max_value=1.5, error="TypeError")


AXES3 = [None, 0, 1, 2, -1, -3, [0], [1, -1], [0, 2], [2, 0], [0, 1, 2], [-1, -2, -3], []]
BAD_AXES3 = [3, -4, [0, 3], [0, 0], [1, -2]]
REDUCTIONS = "max min sum prod mean var std any all logsumexp".split()


def reductions():
    for fn in REDUCTIONS:
        logical = fn in ("any", "all")
        for axis in AXES3:
            keepdims = bool(rng.randint(2))
            x = chosen([0, 0, 1, 2, -0.5], (2, 3, 2)) if logical else random((2, 3, 2))
            # The gradient of std is left out where a group has equal elements only: see std_gradient_of_equal_elements.
            run = case_of_values if fn == "std" and np.any(K.std(x, axis=axis) == 0) else case
            run(fn, x, axis=axis, keepdims=keepdims)
            if axis in (None, 1, -1) or axis == [1, -1]:
                run(fn, x, axis=axis, keepdims=not keepdims)
        for axis in BAD_AXES3:
            # TensorFlow takes an axis twice in the reductions of 2.15 that go through a mask.
            twice = isinstance(axis, list) and len({a % 3 for a in axis}) < len(axis) and max(axis) < 3
            case(fn, random((2, 3, 2)), axis=axis, error="ValueError", note="an_axis_twice" if twice else None)
        for shape in [(), (1,), (1, 1), (5,), (1, 2, 1, 1, 2, 1, 1, 2)]:
            (case_of_values if fn == "std" and np.prod(shape) == 1 else case)(fn, random(shape))
        for dtype in FLOATS[1:]:
            case(fn, tf.cast(tf.constant(rng.permutation(33)[:6].reshape(2, 3) / 8.0 - 2), dtype), axis=pick([0, 1, None]))
        for shape, axis in [((0, 3), 0), ((0, 3), None), ((2, 0), 1), ((0, 3), 1), ((2, 0, 3), [0, 1])]:
            case(fn, random(shape), axis=axis)
        if fn in ("max", "min", "sum", "prod"):
            for dtype in INTS:
                case(fn, random((2, 3), dtype), axis=pick([0, 1, None]))
            case(fn, random((0, 2), "int32"), axis=0)
            case(fn, random((2, 3), "bool"), axis=1, error="TypeError")
        elif fn in ("mean", "var", "std"):
            case(fn, random((2, 3), "bool"), axis=1)
            for dtype in ("int32", "int64", "uint8"):   # integers in TensorFlow, or nothing
                x = values([[0, 1, 3], [2, 2, 7]], dtype)
                by_numpy(fn, getattr(np, fn)(x.numpy().astype("float32"), axis=1), x, axis=1)
        elif logical:
            for dtype in ("int32", "uint8", "bool", "float64"):
                case(fn, random((2, 3), dtype), axis=pick([0, 1, None]))
            case(fn, values([[nan, 0], [0, -0.0]]), axis=1)
        else:
            case(fn, random((2, 3), "int32"), axis=1, error="TypeError")
            case(fn, random((2, 3), "bool"), axis=1, error="TypeError")
        if not logical:
            for specials in ([inf, 1, 2], [-inf, 1, 2], [inf, -inf, 1], [nan, 1, 2], [inf, inf, 0]):
                note = None
                if fn in ("max", "min") and any(v != v for v in specials):
                    note = "extreme_gradient_at_nan"
                if fn in ("var", "std", "logsumexp", "prod") or note:
                    # Their values are held, their gradients there are 0 * inf in one or the other order.
                    case_of_values(fn, values(specials))
                else:
                    case(fn, values(specials))
    for v in ([1, 3, 3], [2, 2, 2, 2], [3, 1, 3, 0, 3]):
        case("max", values(v))
        case("min", values(-np.array(v)))
    case("max", values([[1, 3], [3, 3], [0, 3]]), axis=0)
    case("prod", values([0, 2, 3]))
    case("prod", values([0, 0, 3]))
    case("prod", values([[0, 2, 0], [1, 2, 3]]), axis=1)
    case("var", values([2, 2, 2]))
    case("std", values([2, 2, 2]), note="std_gradient_of_equal_elements")
    case("sum", values([2147483647, 1, 5], "int32"))
    case("prod", values([65536, 65536, 3], "int32"))
    for shape in [(3,), (1, 3), (2, 1), (4, 2), (2, 2, 3)]:
        for axis in [None, 0, -1]:
            case("logsumexp", random(shape), axis=axis, keepdims=axis == -1)
    case("logsumexp", values([1e4, 1e-4]))
    case("logsumexp", values([-inf, 0, 1]))
    case("logsumexp", values([[100, 200, 300], [-300, -200, -100]]), axis=1)
    case_of_values("logsumexp", values([-inf, -inf]))
    for fn in ("argmax", "argmin"):
        for shape, axis in [((3,), 0), ((2, 3), 0), ((2, 3), 1), ((2, 3), -1), ((2, 3, 2), 1), ((2, 3, 2), -3), ((1, 1), 0), ((0, 3), 1)]:
            for dtype in (FLOATS + INTS[:4])[:: 1 if shape == (2, 3) else 5]:
                case(fn, random(shape, dtype), axis=axis)
        case(fn, random((2, 3)))
        case(fn, values([[1, 3, 3], [0, 0, 0]]), axis=1)
        case(fn, values([-inf, inf, inf, -inf]))
        case(fn, values([True, False, True], "bool"), axis=0)
        case(fn, random((2, 3)), axis=2, error="ValueError")
        case(fn, random((2, 3)), axis=-3, error="ValueError")
        case(fn, random((2, 0)), axis=1, error="ValueError")
        case(fn, values([[1, 2], [3, 0]]), axis=None, note="argmax_over_all")
    for fn in ("cumsum", "cumprod"):
        for shape, axis in [((3,), 0), ((4, 2), 0), ((4, 2), 1), ((4, 2), -1), ((2, 3, 2), 1), ((2, 3, 2), -3), ((0, 3), 0), ((2, 0), 1),
                            ((1, 1), 1), ((1, 2, 1, 1, 2, 1, 1, 2), 4)]:
            x = chosen([-2, -1, -0.5, 0.5, 1.5, 2], shape) if fn == "cumprod" else random(shape)
            case(fn, x, axis=axis)
        for dtype in FLOATS[1:3] + INTS[:4]:
            case(fn, random((2, 3), dtype, 1 if dtype[0] == "f" else -2), axis=pick([0, 1]))
        case(fn, chosen([0.5, 1, 2], (4, 2)))
        case(fn, random((2, 3)), axis=2, error="ValueError")
        case(fn, random((2, 3)), axis=-3, error="ValueError")
        case(fn, random((2, 3), "bool"), axis=0, error="TypeError")
    case_of_values("cumsum", values([1, inf, 2, -inf, 3]))
    case_of_values("cumprod", values([1, inf, 2, 0, 3]))
    case("cumprod", values([2, 0, 3]), note="cumprod_gradient_with_zeros")
    for shape, axis in [((4, 3), -1), ((4, 3), 1), ((4, 3), None), ((2, 3, 2), [0, 2]), ((3,), 0), ((2, 0), 1)]:
        case("l2_normalize", random(shape), axis=axis)
    case("l2_normalize", values([3, 4]))
    case("l2_normalize", values([0, 0]))
    case("l2_normalize", values([1e-7], "float64"))
    case("l2_normalize", random((2, 3), "float64"), axis=0)
    case("l2_normalize", random((2, 3), "int32"), axis=0, error="TypeError")
    case("l2_normalize", random((2, 3)), axis=2, error="ValueError")


def case_of_values(fn, *arrays, **args):
    """The value alone."""
    y = FUNCTIONS[fn](list(arrays), **args)
    emit(head_text(fn, args, [tensor_text(t, exact=True) for t in arrays]) + " -> " + tensor_text(y))


def linalg():
    good = [((2, 3), (3, 4)), ((1, 1), (1, 1)), ((4, 2), (2, 4)), ((4, 2), (5, 2, 3)), ((2, 3), (4, 3, 5)), ((2, 2, 3), (3, 4)),
            ((2, 1, 3), (2, 3, 3, 2)), ((2, 0), (0, 3)), ((0, 3), (3, 2)), ((2, 3), (3, 0)), ((2, 2, 2, 2), (2, 2)), ((2, 3), (0, 3, 2)),
            ((1, 2, 1, 2), (1, 1, 2, 1)), ((3,), (2, 3, 2))]
    for a, b in good:
        dtype = pick(FLOATS[:2])
        case("dot", random(a, dtype), random(b, dtype))
        case("dot", random(a), random(b))
    for dtype in FLOATS[2:] + ["int32", "int64"]:
        case("dot", random((2, 3), dtype), random((3, 2), dtype))
        case("dot", random((2, 2, 3), dtype), random((3, 2), dtype))
    for a, b in [((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,))]:
        x, y = random(a), random(b)
        by_numpy("dot", np.dot(x.numpy(), y.numpy()), x, y)   # nothing in TensorFlow
    for a, b in [((2, 3), (2, 3)), ((2, 3), (4, 2, 3)), ((2, 2, 3), (2, 3)), ((), (2, 3)), ((2, 3), ())]:
        case("dot", random(a), random(b), error="ValueError")
    case("dot", random((2, 3)), random((3, 2), "float64"), error="TypeError")
    case("dot", random((2, 3), "bool"), random((3, 2), "bool"), error="TypeError")
    case("dot", values([[inf, 1], [nan, 1]]), values([[1, 0], [0, 1]]))
    case("dot", values([[65536, 2]], "int32"), values([[65536], [3]], "int32"))

    table = [((4,), (4,), None), ((4,), (4,), 1), ((4,), (4,), (1, 1)), ((4,), (4, 5), None), ((4,), (3, 4), (1, 2)), ((4,), (4, 3), (1, 1)),
             ((3, 4), (4,), None), ((3, 4), (4,), (2, 1)), ((3, 4), (4, 5), None), ((3, 4), (4, 5), (2, 1)), ((3, 4), (5, 4), (2, 2)),
             ((3, 4), (5, 4), 2), ((3, 4), (5, 4), -1), ((3, 4), (3, 5), (1, 1)), ((3, 4), (3, 5), 1), ((5, 1), (3, 5), (1, 2)),
             ((5,), (3, 5), (1, 2)), ((3, 4, 2), (2, 3, 4), (2, 3)), ((3, 4, 2), (2, 4), 2), ((3, 4), (2, 3, 4), (2, 3)),
             ((2, 3, 4), (2, 4, 2), None), ((4, 3), (3, 5), (2, 1)), ((2, 3), (5, 3), (2, 2)), ((2, 3), (3,), (2, 1)), ((3,), (3, 2), (1, 1)),
             ((2, 3, 4), (4, 2), (-1, -2)), ((0, 4), (4, 2), None), ((3, 0), (0, 2), None)]
    for a, b, axes in table:
        for batch in (2, 1, 3):
            if batch == 2 or np.prod(a + b) < 60:
                case("batch_dot", random((batch,) + a), random((batch,) + b), axes=axes)
    case("batch_dot", random((0, 3, 4)), random((0, 4, 2)))
    case("batch_dot", values([[1, 2], [3, 4]]), values([[5, 6], [7, 8]]), axes=1)
    for dtype in FLOATS[1:] + ["int32", "int64"]:
        case("batch_dot", random((2, 3, 4), dtype), random((2, 4, 2), dtype), axes=(2, 1))
    bad = [((3,), (3,), None), ((2, 3), (3,), None), ((), (2, 3), 1), ((2, 3, 4), (3, 4, 2), None), ((2, 3, 4), (2, 4, 2), (0, 1)),
           ((2, 3, 4), (2, 4, 2), (2, 0)), ((2, 3, 4), (2, 4, 2), 0), ((2, 3, 4), (2, 4, 2), (1, 1)), ((2, 3, 4), (2, 4, 2), (3, 1)),
           ((2, 3, 4), (2, 4, 2), (2, 3)), ((2, 3), (2, 4), None), ((1, 3), (2, 3), 1), ((2, 3, 4), (2, 4, 2), -3), ((2, 3, 4), (2, 4, 2), (-4, 1)),
           ((2, 3, 4), (2, 4, 2), [1, 2, 1]), ((2, 3, 4), (2, 4, 2), [[1], [2]])]
    for a, b, axes in bad:
        if isinstance(axes, list) and isinstance(axes[0], list):
            continue   # lists in a list are no Axes
        if axes == (-4, 1):   # ends TensorFlow's process
            refused("batch_dot", random(a), random(b), axes=axes, error="ValueError")
            continue
        note = "a_batch_dot_that_tensorflow_takes" if axes in ([1, 2, 1], -3) else None
        case("batch_dot", random(a), random(b), axes=axes, error="ValueError", note=note)

    for shape in SHAPES + [(2, 3, 4), (3, 2, 1, 2)]:
        case("transpose", random(shape, pick(FLOATS + INTS + ["bool"])))
        case("transpose", random(shape))
    for ref, at in [((4, 3), (2,)), ((4,), (3,)), ((4, 2), (2, 2)), ((4, 2, 2), ()), ((4, 3), (0,)), ((4, 0), (2,)), ((3, 2), (2, 1, 2)),
                    ((1, 2), (4,))]:
        for dtype in ("int32", "int64"):
            at_values = tf.constant(rng.randint(0, ref[0], at), dtype)
            case("gather", random(ref, pick(FLOATS)), at_values)
            case("gather", random(ref), at_values)
    for dtype in INTS + ["bool"]:
        case("gather", random((3, 2), dtype), tf.constant([2, 0, 2]))
    case("gather", random((3, 2)), tf.constant([1, 1, 0]))
    case("gather", values(np.arange(24), shape=(4, 2, 3)), tf.constant([1, 3, 0, 3]))
    for at in ([3], [-1], [0, 5], [[0], [-2147483648]]):
        case("gather", random((3, 2)), tf.constant(at), error="ValueError")
    case("gather", random((0, 2)), tf.constant([0]), error="ValueError")
    case("gather", random((3, 2)), values([0.0, 1.0]), error="TypeError")
    case("gather", random(()), tf.constant([0]), error="ValueError")


def shaping():
    def any_dtype():
        return pick(["float32"] * 6 + FLOATS + INTS[:-1] + ["bool"])   # TensorFlow tiles no uint16

    for shapes, axis in [([(5, 2), (2, 2)], 0), ([(2, 3, 2), (2, 1, 2)], 1), ([(2, 1, 2, 3), (2, 1, 2, 1)], 3), ([(2, 2), (2, 3)], -1),
                         ([(2, 3)], 0), ([(0, 2), (2, 2)], 0), ([(2,), (3,), (1,)], 0), ([(2, 0), (2, 0)], 1), ([(1, 2), (3, 2), (2, 2)], -2),
                         ([(1, 1, 1, 1, 1, 1, 1, 1), (1, 1, 1, 1, 1, 2, 1, 1)], 5)]:
        for _ in range(3):
            dtype = any_dtype()
            case("concatenate", *[random(s, dtype) for s in shapes], axis=axis)
        case("concatenate", *[random(s) for s in shapes], axis=axis)
    case("concatenate", random((2, 2)), random((2, 1)))
    for shapes, axis in [([(2, 3), (3, 3)], 1), ([(2, 3), (3,)], 0), ([(2, 3), (2, 3)], 2), ([(), ()], 0)]:
        case("concatenate", *[random(s) for s in shapes], axis=axis, error="ValueError")
    case("concatenate", random((2, 3)), random((2, 3)), axis=-3, error="ValueError", note="concatenate_far_below_the_rank")
    case("concatenate", random((2, 3)), random((2, 3), "int32"), error="TypeError")
    for shape in [(), (3,), (2, 3), (0, 2), (2, 1, 2)]:
        for axis in range(-len(shape) - 1, len(shape) + 1):
            dtype = any_dtype()
            case("stack", *[random(shape, dtype) for _ in range(1 + rng.randint(3))], axis=axis)
    case("stack", random((2,)), random((2,)))
    for shapes, axis in [([(2, 3), (2, 3)], 3), ([(2, 3), (2, 3)], -4), ([(2, 3), (3, 2)], 0), ([(2,), ()], 0)]:
        case("stack", *[random(s) for s in shapes], axis=axis, error="ValueError")
    case("stack", random((2,)), random((2,), "float64"), error="TypeError")

    for shape, to in [((4, 2), (8, 1)), ((2, 3), (-1,)), ((2, 3), (3, -1)), ((6,), (1, 2, 1, 3)), ((), (1,)), ((1, 1), ()), ((0, 3), (3, 0)),
                      ((0, 3), (0, 5)), ((4, 3, 1), (4, 3, 1, 1)), ((2, 3), (2, 3)), ((0, 3), (-1, 3)), ((2, 2), (1, 1, 2, 1, 1, 2, 1, -1))]:
        case("reshape", random(shape, any_dtype()), shape=to)
        case("reshape", random(shape), shape=to)
    for shape, to in [((2, 3), (4,)), ((2, 3), (-1, 4)), ((2, 3), (-1, -1)), ((2, 3), (-2, 3)), ((2, 3), (0, -1)), ((2,), ())]:
        case("reshape", random(shape), shape=to, error="ValueError")
    refused("reshape", random((0, 3)), shape=(0, -1), error="ValueError")   # TensorFlow guesses
    for shape, pattern in [((4, 2, 3), (2, 0, 1)), ((2, 3), (1, 0)), ((2, 3), (0, 1)), ((3,), (0,)), ((), ()), ((2, 3, 1, 2), (3, 1, 0, 2)),
                           ((0, 2), (1, 0)), ((1, 2, 1, 1, 2, 1, 1, 2), (7, 6, 5, 4, 3, 2, 1, 0)), ((2, 2, 3), (0, 2, 1))]:
        for _ in range(2):
            case("permute_dimensions", random(shape, any_dtype()), pattern=pattern)
    for shape, pattern in [((2, 3), (0,)), ((2, 3), (0, 0)), ((2, 3), (0, 2)), ((2, 3), (0, 1, 2))]:
        case("permute_dimensions", random(shape), pattern=pattern, error="ValueError")
    by_numpy("repeat_elements", np.zeros((0, 2), "float32"), random((0, 2)), rep=3, axis=0)   # nothing in TensorFlow
    for shape in [(2,), (2, 3), (2, 1, 3), (2, 0)]:
        for axis in range(1 if 0 in shape else len(shape)):
            case("repeat_elements", random(shape), rep=3, axis=axis)
            case("repeat_elements", random(shape, any_dtype()), rep=1 + rng.randint(3), axis=axis)
    case("repeat_elements", random((2, 2)), rep=2, axis=-1)
    case("repeat_elements", random((2, 2)), rep=2, axis=2, error="ValueError")
    for shape, n in [((4, 1), 3), ((2, 3), 1), ((1, 2), 2), ((0, 2), 2)]:
        case("repeat", random(shape), n=n)
        case("repeat", random(shape, any_dtype()), n=n)
    for shape in [(2,), (), (1, 2, 3)]:
        case("repeat", random(shape), n=2, error="AssertionError")
    for shape, n in [((3, 4), 2), ((3, 4), (2, 1)), ((2, 2, 2), 2), ((2, 2, 2), (1, 2)), ((1, 2, 2), (3, 1, 2)), ((2,), 3), ((2, 3), (0, 1)),
                     ((0, 3), (2, 2)), ((2, 3), (1, 1))]:
        case("tile", random(shape), n=n)
        case("tile", random(shape, any_dtype()), n=n)
    case("tile", random((3,)), n=(2, 1), error="NotImplementedError")
    case("tile", random((3,)), n=-1, error="ValueError")
    for shape in SHAPES + [(4, 1), (2, 3, 4)]:
        case("flatten", random(shape, any_dtype()))
    for shape in [(20, 2, 1), (2, 3, 2), (2, 3), (0, 3, 2), (2, 0), (1, 2, 1, 1, 2, 1, 1, 2)]:
        case("batch_flatten", random(shape, any_dtype()))
    case("batch_flatten", random((3,)))
    for shape in [(), (3,), (2, 3), (0, 2), (2, 1, 3)]:
        for axis in range(-len(shape) - 1, len(shape) + 1):
            case("expand_dims", random(shape, any_dtype()), axis=axis)
        for axis in (-len(shape) - 2, len(shape) + 1):
            case("expand_dims", random(shape), axis=axis, error="ValueError")
    case("expand_dims", random((4, 3)))
    for shape, axis in [((4, 3, 1), 2), ((4, 1, 1), 1), ((1,), 0), ((1, 3), -2), ((0, 1), 1), ((4, 3, 1, 1), 2), ((1, 1), -1)]:
        case("squeeze", random(shape, any_dtype()), axis=axis)
    for shape, axis in [((4, 3), 0), ((4, 1), 2), ((4, 1), -3), ((), 0), ((0, 3), 0)]:
        case("squeeze", random(shape), axis=axis, error="ValueError")
    for shape, axes in [((4, 3, 2), 1), ((4, 3, 2), (1, 2)), ((4, 3, 2), (0, -1)), ((3,), 0), ((2, 3), []), ((0, 3), 0), ((2, 3), (0, 1)), ((2, 3), -2)]:
        case("reverse", random(shape), axes=axes)
        case("reverse", random(shape, any_dtype()), axes=axes)
    for axes in (2, -3, (0, 0), (1, -1)):
        case("reverse", random((2, 3)), axes=axes, error="ValueError")
    for shape, start, size in [((2, 5), (0, 1), (2, 3)), ((2, 5), (1, 0), (1, 4)), ((3, 2, 3), (1, 1, 0), (1, 1, 3)), ((2, 2, 3), (1, 0, 0), (1, 2, 3)),
                               ((3, 3, 3), (1, 0, 0), (2, 1, 3)), ((4, 4), (1, 2), (2, 2)), ((4, 4), (1, 2), (-1, 1)), ((3,), (0,), (0,)), ((3,), (3,), (0,)),
                               ((0, 2), (0, 1), (0, 1)), ((2, 3), (0, 0), (-1, -1)), ((3,), (3,), (-1,))]:
        case("slice", random(shape), start=start, size=size)
        case("slice", random(shape, any_dtype()), start=start, size=size)
    for shape, start, size in [((2, 3), (0,), (2,)), ((2, 3), (0, 0, 0), (1, 1, 1)), ((2, 3), (0, 2), (1, 2)), ((2, 3), (3, 0), (1, 1)), ((2, 3), (-1, 0), (1, 1)),
                               ((2, 3), (0, 0), (1, -2)), ((2, 3), (0, 0), (1, 4)), ((2, 3), (0, 0), (1,))]:
        case("slice", random(shape), start=start, size=size, error="ValueError")
    for shape, dtype, classes in [((3,), "int32", 3), ((2, 3), "int64", 4), ((), "int32", 2), ((0, 2), "int32", 3), ((2, 2), "uint8", 5), ((3,), "int32", 1),
                                  ((3,), "int64", 0), ((2, 1, 2), "int32", 2)]:
        case("one_hot", tf.constant(rng.randint(0, max(classes, 1), shape), dtype), num_classes=classes)
    case("one_hot", tf.constant([0, 2, -1, 3, -2147483648, 1]), num_classes=3)
    case("one_hot", values([0.0, 1.0]), num_classes=2, error="TypeError")


def activations_and_losses():
    for shape, axis in [((4, 5), -1), ((2, 5, 3), 1), ((2, 3, 2, 2), 2), ((2, 3), 0), ((3,), -1), ((3,), 0), ((1, 1), 1), ((0, 3), 1), ((2, 3), -2), ((1, 2, 1, 2, 2), 3)]:
        case("softmax", random(shape), axis=axis)
        case("softmax", random(shape, "float64"), axis=axis)
    for dtype in FLOATS[2:]:
        case("softmax", random((2, 3), dtype))
    for v in ([1, 2, 3], [1e4, 0, -1e4], [1000, 1000], [-1000, -1000], [-inf, 0, 1], [88, 89, 90]):
        case("softmax", values(v))
    case_of_values("softmax", values([-inf, -inf]))
    case("softmax", random((2, 3)), axis=2, error="ValueError")
    case("softmax", random((2, 3)), axis=-3, error="ValueError")
    case("softmax", random(()), error="ValueError")
    case("softmax", random((2, 3), "int32"), error="TypeError")

    def probabilities(shape, dtype="float64", axis=-1):
        p = rng.randint(1, 9, shape) / 8.0
        return tf.cast(tf.constant(p), dtype)

    # In halves TensorFlow rounds each step, and its 1 - 1e-7 is 1.
    for dtype in ("float32", "float64"):
        for shape, axis in [((2, 3), -1), ((2, 3), 1), ((2, 3), 0), ((2, 3, 2), 1), ((2, 3, 2), -3), ((2, 3, 2), 2), ((1, 1), -1), ((3,), 0), ((0, 3), -1)]:
            t = probabilities(shape, dtype)
            case("categorical_crossentropy", t, probabilities(shape, dtype), axis=axis)
            # The specification prefers the true derivative where targets do not sum to 1: these do.
            t = tf.constant(np.eye(shape[axis])[rng.randint(0, shape[axis], [n for i, n in enumerate(shape) if i != axis % len(shape)])], dtype)
            t = tf.constant(np.moveaxis(t.numpy(), -1, axis))
            if shape != (0, 3):
                case("categorical_crossentropy", t, random(shape, dtype, -3, 3), from_logits=True, axis=axis)
            ids_shape = [n for i, n in enumerate(shape) if i != axis % len(shape)]
            ids = tf.constant(rng.randint(0, shape[axis], ids_shape), pick(["int32", "int64", "uint8"]))
            if len(shape) > 1:
                for logits in (False, True):
                    case("sparse_categorical_crossentropy", ids, probabilities(shape, dtype) if not logits else random(shape, dtype), from_logits=logits, axis=axis)
        case("categorical_crossentropy", values([[0, 1, 0]], dtype), values([[.375, .125, .5]], dtype))
        case("categorical_crossentropy", values([[1, 0], [0, 1]], dtype), values([[1, 0], [1, 0]], dtype))
        case("categorical_crossentropy", values([[.375, .125, .5], [.25, .5, .25]], dtype), values([[0, 1, 0], [1, 0, 0]], dtype))
        case("categorical_crossentropy", values([[1, 0, 0]], dtype), values([[2, 1, 1]], dtype))
        case_of_values("categorical_crossentropy", values([[1, 0, 0]], dtype), values([[0, 0, 0]], dtype))
        case_of_values("categorical_crossentropy", values([[1, 0]], dtype), values([[nan, 1]], dtype))
        case("categorical_crossentropy", values([[0, 0, 1], [0, 1, 0]], dtype), values([[1, 2, 3], [1e3, -1e3, 0]], dtype), from_logits=True)
        case("categorical_crossentropy", values([[.5, .25, .25]], dtype), values([[1, 2, 3]], dtype), from_logits=True)
        case("categorical_crossentropy", values([[.5, .25, .75]], dtype), values([[1, 2, 3]], dtype), from_logits=True, note="logits_gradient_of_targets_that_do_not_sum_to_1")
        # ids in every shape
        for t, o in [((2, 1), (2, 3)), ((2, 2), (2, 2, 3)), ((2, 2, 1), (2, 2, 3)), ((4,), (2, 2, 3)), ((2,), (2, 3)), ((1, 2), (2, 3)), ((2, 3, 1), (2, 3, 1)),
                     ((0,), (0, 3)), ((0, 1), (0, 3))]:
            for logits in (False, True):
                ids = tf.constant(rng.randint(0, o[-1], t), pick(["int32", "int64", "float32"]))
                case("sparse_categorical_crossentropy", ids, probabilities(o, dtype) if not logits else random(o, dtype), from_logits=logits)
        case("sparse_categorical_crossentropy", values([0, 1], "int32"), values([[0, .25, .75], [0, .25, .75]], dtype))
        case("sparse_categorical_crossentropy", values([0], "int32"), values([[.25, .25]], dtype))
        for v in ([1, 2, 3], [1000, 0, -1000], [-1000, -1000, 0]):
            case("sparse_categorical_crossentropy", values([2], "int32"), values([v], dtype), from_logits=True)
        for shape in [(2, 3), (), (3,), (0, 2), (2, 1, 2)]:
            case("binary_crossentropy", probabilities(shape, dtype), random(shape, dtype, -3, 3), from_logits=True)
            case("binary_crossentropy", probabilities(shape, dtype), tf.cast(tf.constant(rng.randint(1, 8, shape) / 8.0), dtype))
        case("binary_crossentropy", values([1, 0, 1, 0, .25, 1, 0, .5], dtype), values([0, 2, -2, 100, 1, -100, -100, 0], dtype), from_logits=True)
        case_of_values("binary_crossentropy", values([1, 0], dtype), values([nan, nan], dtype), from_logits=True)
    case("binary_crossentropy", values([1, 0, .5]), values([0, 1, 0]), epsilon_twice=True, note="epsilon_twice")
    t, o = values([[1, 0, 0]]), values([[0.5, 0.25, 0.25]])
    case("categorical_crossentropy", t, values([[.5, .5]]), error="ValueError")
    case("categorical_crossentropy", t, values([.5, .25, .25]), error="ValueError")
    case("categorical_crossentropy", t, values([[.5, .5]]), from_logits=True, error="ValueError")
    case("categorical_crossentropy", t, o, axis=2, error="ValueError")
    case("categorical_crossentropy", t, o, axis=-3, from_logits=True, error="ValueError")
    case("categorical_crossentropy", values([[1, 0]], "int32"), values([[1, 2]], "int32"), error="TypeError")
    case("categorical_crossentropy", values([[1, 0]], "float64"), values([[1, 2]], "float32"), error="TypeError")
    case("sparse_categorical_crossentropy", values([3], "int32"), o, error="ValueError")
    case("sparse_categorical_crossentropy", values([-1], "int32"), o, from_logits=True, error="ValueError")
    case("sparse_categorical_crossentropy", values([0, 1], "int32"), o, error="ValueError")
    case("sparse_categorical_crossentropy", values([0], "int32"), o, axis=2, error="ValueError", note="sparse_axis_beyond_the_rank")
    case("binary_crossentropy", t, values([[.5, .5]]), from_logits=True, error="ValueError")
    case("binary_crossentropy", values([[1.0]]), values([[.5, .5]]), epsilon_twice=True, error="ValueError", note="binary_crossentropy_of_shapes_that_differ")
    case("binary_crossentropy", values([[1.0]], "float64"), values([[.5]]), error="TypeError")

    for k in range(-1, 7):
        p = chosen([0.1, 0.2, 0.3, 0.4, 0.5], (4, 5))
        case("in_top_k", p, tf.constant(rng.randint(0, 5, 4), pick(["int32", "int64"])), k=k)
        case("in_top_k", random((3, 5)), tf.constant(rng.randint(-1, 6, 3)), k=k)
        specials = values([[nan, 1, 2], [1, inf, 2], [-inf, 1, 2], [1, 1, 1], [3, 2, 1]])
        case("in_top_k", specials, values([1, 1, 1, 2, 2], "int32"), k=k)
    case("in_top_k", random((0, 3)), values([], "int32"), k=1)
    case("in_top_k", random((2, 3)), values([0, 1, 2], "int32"), k=1, error="ValueError")
    case("in_top_k", random((3,)), values([0, 1, 2], "int32"), k=1, error="ValueError")
    case("in_top_k", random((2, 3)), values([[0], [1]], "int32"), k=1, error="ValueError")
    case("in_top_k", random((2, 3), "int32"), values([0, 1], "int32"), k=1, error="TypeError")
    case("in_top_k", random((2, 3)), values([0, 1]), k=1, error="TypeError")


SIZES = tuple(map(int, sys.argv[2:])) or (1, 2, 3)


def shape_of_rank(low, high, sizes=SIZES):
    return tuple(int(n) for n in rng.choice(sizes, rng.randint(low, high + 1)))


def at_random():
    """Functions, ranks, sizes, axes and dtypes by chance."""
    for _ in range(60):
        a, b = shape_of_rank(2, 3), shape_of_rank(2, 3)
        b = b[:-2] + (a[-1], b[-1])
        case("dot", *[random(s, dtype) for dtype in [pick(FLOATS[:2])] for s in (a, b)])
    for _ in range(90):
        a, b, batch = shape_of_rank(1, 3), shape_of_rank(1, 3), int(rng.randint(1, 4))
        i, j = rng.randint(len(a)), rng.randint(len(b))
        b = b[:j] + (a[i],) + b[j + 1:]
        axes = (i + 1 - (len(a) + 1) * rng.randint(2), j + 1 - (len(b) + 1) * rng.randint(2))
        case("batch_dot", *[random((batch,) + s, dtype) for dtype in [pick(FLOATS[:2])] for s in (a, b)], axes=tuple(map(int, axes)))
    for _ in range(40):
        ref = shape_of_rank(1, 3)
        case("gather", random(ref, pick(FLOATS[:2])), tf.constant(rng.randint(0, ref[0], shape_of_rank(0, 2)), "int32"))
    for _ in range(120):
        x = shape_of_rank(1, 4)
        axes = [int(i - len(x) * rng.randint(2)) for i in rng.permutation(len(x))[:rng.randint(1, len(x) + 1)]]
        fn = pick(REDUCTIONS[:5] + ["var", "logsumexp", "any", "all"])
        case(fn, random(x, pick(FLOATS[:2])), axis=axes, keepdims=bool(rng.randint(2)))
    for _ in range(60):
        x = shape_of_rank(1, 4)
        axis = int(rng.randint(-len(x), len(x)))
        fn = pick(["cumsum", "cumprod", "argmax", "argmin", "softmax", "l2_normalize"])
        case(fn, random(x, pick(FLOATS[:2]), 0.125), axis=axis)
    for _ in range(80):
        x, y = list(shape_of_rank(4, 4)), list(shape_of_rank(4, 4))
        for i in range(4):   # one of two, or both
            if x[i] != y[i]:
                pick([x, y])[i] = 1
            if 1 not in (x[i], y[i]):
                y[i] = x[i]
        x, y = tuple(x[rng.randint(4):]), tuple(y[rng.randint(4):])
        fn, dtype = pick(["maximum", "minimum", "pow", "less", "equal", "greater_equal"]), pick(FLOATS[:2])
        case(fn, random(x, dtype, 0.125), random(y, dtype))
    for _ in range(100):
        fn, dtype = pick(["square", "abs", "sqrt", "exp", "log", "sin", "cos", "softplus", "softsign", "sigmoid", "hard_sigmoid", "tanh"]), pick(FLOATS[:2])
        case(fn, tf.cast(tf.constant(np.round(rng.standard_normal(shape_of_rank(1, 2)) * pick([0.1, 1, 3, 10]), 3)), dtype))
    for _ in range(40):
        args = {"alpha": pick([0.0, 0.25, -0.5]), "max_value": pick([None, 1.0, 2.5]), "threshold": pick([0.0, 0.5625, -0.4375])}
        case("relu", random(shape_of_rank(1, 2)), **args)
    for _ in range(100):
        x = shape_of_rank(2, 4)
        n, t = len(x), random(x, pick(["float32", "int32", "float64"]))
        axis = int(rng.randint(-n, n))
        starts = [int(rng.randint(d)) for d in x]
        by = [("permute_dimensions", {"pattern": tuple(map(int, rng.permutation(n)))}), ("repeat_elements", {"rep": int(rng.randint(1, 4)), "axis": axis}),
              ("tile", {"n": tuple(int(k) for k in rng.randint(1, 3, n))}), ("expand_dims", {"axis": axis}), ("reverse", {"axes": axis}),
              ("slice", {"start": starts, "size": [int(rng.randint(0, d - s + 1)) for d, s in zip(x, starts)]}),
              ("reshape", {"shape": tuple(int(d) for d in rng.permutation(x))}), ("transpose", {}), ("stack", {"axis": axis})]
        fn, args = by[rng.randint(len(by))]
        if fn == "repeat_elements" and axis < 0:
            args["axis"] += n
        case(fn, t, **args)
    for _ in range(40):
        x = shape_of_rank(1, 4)
        axis = int(rng.randint(len(x)))
        dtype = pick(["float32", "bool", "float64"])
        case("concatenate", *[random(x[:axis] + (int(rng.randint(0, 4)),) + x[axis + 1:], dtype) for _ in range(rng.randint(1, 4))], axis=axis)
    for _ in range(60):
        x, dtype = shape_of_rank(2, 3, SIZES[1:]), pick(FLOATS[:2])
        axis = int(rng.randint(len(x)))
        ids = rng.randint(0, x[axis], x[:axis] + x[axis + 1:])
        one = tf.constant(np.moveaxis(np.eye(x[axis])[ids], -1, axis), dtype)
        p = tf.constant(rng.randint(1, 9, x) / 8.0, dtype)
        z = random(x, dtype, -6, 6)
        logits = bool(rng.randint(2))
        case("categorical_crossentropy", one, z if logits else p, from_logits=logits, axis=axis)
        case("sparse_categorical_crossentropy", tf.constant(ids, "int32"), z if logits else p, from_logits=logits, axis=axis)
        case("binary_crossentropy", p, z if logits else tf.clip_by_value(p, 0.125, 0.875), from_logits=logits)
        case("in_top_k", random((3, 4), low=-0.5, high=0.5), tf.constant(rng.randint(0, 4, 3), "int32"), k=int(rng.randint(1, 5)))


def operators():
    """Specification 2.0.9."""
    pairs = [((2, 3), (2, 3)), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 1), (1, 3)), ((2, 3), ()), ((), ()), ((0, 3), (3,))]
    for fn in "add subtract multiply divide floor_divide remainder".split():
        divides = fn in ("divide", "floor_divide", "remainder")
        for a, b in pairs:
            for dtype in ("float32", "float64"):
                case(fn, random(a, dtype), chosen([-2, -0.5, 0.375, 1.5], b, dtype) if divides else random(b, dtype))
            case(fn, random(a, "int32"), chosen([-2, -1, 1, 3], b, "int32") if divides else random(b, "int32"))
        case(fn, random((2, 3), "int64"), y=2)
        case(fn, random((2, 3)), y=2)
        case(fn, random((2, 3)), y=0.75)
        case(fn, random((2, 3), "int32"), y=1.5, error="TypeError")
        case(fn, random((3,)), random((3,), "float64"), error="TypeError")
        case(fn, random((3,)), random((3,), "int32"), error="TypeError")
        case(fn, random((2, 3)), random((2,)), error="ValueError")
        case(fn, random((3,), "bool"), random((3,), "bool"), error="TypeError", note="arithmetic_of_bool" if fn in ("add", "multiply", "divide") else None)
    for fn in ("floor_divide", "remainder"):
        case(fn, values([-7, 7, -7, 7, 6], "int32"), values([2, 2, -2, -2, 3], "int32"))
        case(fn, values([-7, 7, -7, 7, 6]), values([2, 2, -2, -2, 3]))
        case(fn, values([1, 2], "int32"), values([1, 0], "int32"), error="ValueError")
    case("divide", values([7, 1], "int8"), values([2, 4], "int8"))
    case("divide", values([1, 0, -1, 1]), values([0, 0, 0, inf]))
    case("add", values([2147483647], "int32"), y=1)
    for fn in ("and", "or"):
        for a, b in pairs:
            case(fn, random(a, "bool"), random(b, "bool"))
        refused(fn, random((3,)), random((3,)), error="TypeError")   # on integers TensorFlow has bits
    for shape in SHAPES:
        case("not", random(shape, "bool"))
        case("negative", random(shape, pick(["float32", "int32"])))


def keras_tests():
    """The calls of Keras' own tests (specification 4.2, 4.3, 4.4, 4.8, 4.11), on inputs in [-0.5, 0.5)."""
    def x(*shape):
        return tf.constant(rng.randint(-32, 32, shape) / 64.0, "float32")

    case("dot", x(4, 2), x(2, 4))
    case("dot", x(4, 2), x(5, 2, 3))
    for a, b, axes in [((4, 2, 3), (4, 5, 3), (2, 2)), ((4, 2, 3), (4, 3), (2, 1)), ((4, 2), (4, 2, 3), (1, 1)), ((32, 20), (32, 20), 1),
                       ((32, 20), (32, 20), (1, 1)), ((7, 3, 4, 5), (7, 2, 3, 4), (2, 3)), ((7, 3, 4, 5), (7, 2, 4), 2),
                       ((7, 3, 4), (7, 2, 3, 4), (2, 3)), ((7, 4, 3), (7, 3, 5), (2, 1)), ((7, 4), (7, 3, 4), (1, 2)), ((7, 4), (7, 4), None)]:
        case("batch_dot", x(*a), x(*b), axes=axes)
    case("transpose", x(4, 2))
    for axes in (1, (1, 2), (0, -1)):
        case("reverse", x(4, 3, 2), axes=axes)
    case("gather", values(np.arange(60), shape=(10, 2, 3)), tf.constant([1, 3, 7, 9]))

    case("reshape", x(4, 2), shape=(8, 1))
    case("permute_dimensions", x(4, 2, 3), pattern=(2, 0, 1))
    case("repeat", x(4, 1), n=3)
    case("flatten", x(4, 1))
    case("batch_flatten", x(20, 2, 5))
    case("expand_dims", x(4, 3), axis=-1)
    case("expand_dims", x(4, 3, 2), axis=1)
    case("squeeze", x(4, 3, 1), axis=2)
    case("squeeze", x(4, 1, 1), axis=1)
    case("reshape", x(4, 3, 1, 1), shape=(4, 3, 1, 1))
    for shape in [(2,), (2, 3), (2, 3, 4)]:
        for axis in range(len(shape)):
            case("repeat_elements", x(*shape), rep=3, axis=axis)
    for shape, n in [((3, 4), 2), ((3, 4), (2, 1)), ((3, 4, 5), 2), ((3, 4, 5), (1, 2)), ((3, 4, 5), (3, 1, 2))]:
        case("tile", x(*shape), n=n)
    for a, b, axis in [((5, 2), (7, 2), 0), ((5, 4, 6), (5, 3, 6), 1), ((5, 4, 6, 10), (5, 4, 6, 2), 3), ((5, 4, 6, 3), (5, 4, 6, 2), -1)]:
        case("concatenate", x(*a), x(*b), axis=axis)
        if np.prod(a) < 800:
            case("stack", x(*a), x(*a), axis=axis)
    for shape, start, size in [((2, 5), (0, 1), (2, 3)), ((2, 5), (1, 0), (1, 4)), ((3, 2, 3), (1, 1, 0), (1, 1, 3)), ((3, 2, 3), (1, 0, 0), (1, 2, 3)),
                               ((3, 2, 3), (1, 0, 0), (2, 1, 3))]:
        case("slice", x(*shape), start=start, size=size)
    case("slice", x(3, 2, 3), start=(1, 0, 0, 0), size=(2, 1, 3), error="ValueError")
    case("one_hot", tf.constant(rng.randint(0, 20, (30, 10))), num_classes=20)

    for fn in ("max", "min", "mean", "var", "std", "prod", "any", "all"):
        case(fn, x(4, 2))
        case(fn, x(4, 2), axis=1, keepdims=True)
        case(fn, x(4, 2, 3), axis=[1, -1])
    case("mean", x(4, 2, 3), axis=-1, keepdims=True)
    for fn in ("argmax", "argmin"):
        case(fn, x(4, 2))
        case(fn, x(4, 2), axis=1)
    for fn in "square abs sqrt exp round sign cos sin log".split():
        t = x(4, 2)
        (case_of_values if fn in ("log", "sqrt") else case)(fn, t)
    case("pow", x(4, 2), y=3)
    case("clip", x(4, 2), min_value=0.4, max_value=0.6)
    for fn in "equal not_equal greater greater_equal less less_equal maximum minimum".split():
        case(fn, x(4, 2), x(4, 2))
    for fn in ("cumsum", "cumprod"):
        t = tf.where(x(4, 2) == 0, 0.25, x(4, 2) + 0.015625)
        case(fn, tf.where(t == 0, 0.25, t))
        case(fn, tf.where(t == 0, 0.25, t), axis=1)
    for shape in [(3,), (1, 3), (2, 1), (4, 2), (4, 2, 3)]:
        for axis, keepdims in [(None, False), (0, False), (-1, False), (-1, True)] + ([(1, False), (1, True)] if len(shape) > 1 else []) + (
                [([1, -1], False), ([1, -1], True)] if len(shape) > 2 else []):
            case("logsumexp", x(*shape), axis=axis, keepdims=keepdims)
    for shape in [(4, 2), (2, 3)]:
        low = x(*shape)
        case("clip", x(*shape), low, low + 1)

    for alpha, top, threshold in [(0., None, 0.), (.1, None, 0.), (0., 5., 0.), (0., None, .8), (.1, 5., 0.), (.1, None, .8), (0., 5., .8), (.1, 5., .8),
                                  (.1, 0., .8), (.1, 5., -2.8), (.1, 9., .8)]:
        case("relu", x(4, 2), alpha=alpha, max_value=top, threshold=threshold)
    case("softsign", x(4, 10))
    case("softplus", x(4, 10))
    case("elu", x(4, 10), alpha=0.5)
    for fn in ("sigmoid", "hard_sigmoid", "tanh"):
        case(fn, x(4, 2))
    for shape, axis in [((4, 10), -1), ((4, 5, 3), 1), ((4, 5, 3, 10), 2)]:
        case("softmax", x(*shape), axis=axis)
    for axis in (-1, 1):
        case("l2_normalize", x(4, 3), axis=axis)
    soft = values([[.4, .6], [.3, .7], [.1, .9], [.2, .8]])
    case("binary_crossentropy", soft, values([[.3, .7], [.2, .8], [.4, .6], [.1, .9]]))
    case("binary_crossentropy", soft, x(4, 2), from_logits=True)
    case("categorical_crossentropy", soft, values([[1, 0], [1, 0], [0, 1], [0, 1]]))
    case("categorical_crossentropy", soft, x(4, 2), from_logits=True)
    soft = values([[.4, .1, .5], [.2, .6, .2]])
    case("categorical_crossentropy", soft, values([[0, 1, 0], [1, 0, 0]]))
    case("categorical_crossentropy", soft, x(2, 3), from_logits=True)
    scores = tf.constant(rng.permutation(200).reshape(20, 10) / 256.0, "float32")
    ties = scores.numpy().copy()
    ties[:, rng.permutation(10)[:5]] = ties[:, :1]
    for k in range(1, 11):
        case("in_top_k", scores, tf.constant(rng.randint(0, 10, 20), "int32"), k=k)
        case("in_top_k", tf.constant(ties), tf.zeros(20, "int32"), k=k)


def static_shapes():
    f, i, n = "float32", "int32", None
    for fn in "square exp round sigmoid softplus softmax cumsum".split():
        for shape in [(n, 3), (n,), (2, n, n), n]:
            if not (shape is n and fn == "softmax"):
                static(fn, (f, shape))
    for fn in ("maximum", "less", "pow"):
        for a, b in [((n, 3), (3,)), ((n, 3), (2, 1)), ((n, 3), (n, 3)), ((n, 3), (1, 3)), ((n, n), (n,)), ((2, 1), (1, n)), (n, (2, 3)), ((n, 3), n), ((n,), ())]:
            static(fn, (f, a), (f, b))
    for fn in ("sum", "mean", "max", "any", "logsumexp"):
        for shape, axis, keepdims in [((n, 3), 0, False), ((n, 3), 1, False), ((n, 3), 1, True), ((2, n, 4), [0, -1], False), ((2, n, 4), [0, -1], True),
                                      ((n, n), None, False), ((n, n), None, True), (n, None, False)]:
            static(fn, ("bool" if fn == "any" else f, shape), axis=axis, keepdims=keepdims)
    static("argmax", (f, (n, 3)))
    static("argmin", (f, (n, 3)), axis=0)
    for a, b in [((n, 3), (3, 4)), ((2, n), (n, 4)), ((n, 3), (n, 4)), ((n, n), (n, n)), ((n, 2, 3), (3, 4)), ((2, 7, 3), (4, 6, 3, 5)), ((n, 7, 3), (n, 6, 3, 5)),
                 ((2, n, 3), (4, n, 5))]:
        static("dot", (f, a), (f, b))
    for a, b, axes in [((n, 3, 4, 5), (n, 2, 3, 4), (2, 3)), ((n, 3, 4, 5), (n, 2, 4), 2), ((n, 3, 4), (n, 2, 3, 4), (2, 3)), ((n, 4, 3), (n, 3, 5), (2, 1)),
                       ((n, 4), (n, 3, 4), (1, 2)), ((n, 4), (n, 4), None), ((7, 4), (n, 4), None), ((n, 4, 3), (7, 3, 5), None), ((n, n, 3), (n, 3, n), None)]:
        static("batch_dot", (f, a), (f, b), axes=axes)
    for shape in [(n, 3), (2, n, 4), n]:
        static("transpose", (f, shape))
        static("flatten", (f, shape))
    for a, b in [((n, 3), (n,)), ((5, n), (2, 3)), ((n,), ()), ((4, 3), n)]:
        static("gather", (f, a), (i, b))
    for shapes, axis in [([(n, 3), (n, 4)], -1), ([(n, 3), (2, 4)], 1), ([(n, 3), (2, 3)], 0), ([(n, n), (2, 3)], 1), ([(2, n), (n, 3)], 0)]:
        static("concatenate", *[(f, s) for s in shapes], axis=axis)
    for shapes, axis in [([(n, 3), (2, n)], 0), ([(n, 3), (n, 3)], -1), ([(n,), (2,)], 1)]:
        static("stack", *[(f, s) for s in shapes], axis=axis)
    for shape, to in [((n, 3), (-1, 3, 1)), ((n, 3), (2, 3)), ((2, 3), (-1,)), ((n, n), (-1,)), (n, (2, 3))]:
        static("reshape", (f, shape), shape=to)
    static("permute_dimensions", (f, (n, 3, 4)), pattern=(2, 0, 1))
    for shape in [(n, 3, 4), (n, n, 4), (3, n, 4), (2, 3)]:
        static("batch_flatten", (f, shape), note="batch_flatten_of_an_image" if shape in ((n, 3, 4), (3, n, 4)) else None)
    for shape, rep, axis in [((n, 3), 3, 1), ((n, 3), 3, 0), ((2, n, 4), 2, 1)]:
        static("repeat_elements", (f, shape), rep=rep, axis=axis)
    static("repeat", (f, (n, 3)), n=4)
    static("repeat", (f, (2, n)), n=4)
    static("tile", (f, (n, 4)), n=2)
    static("tile", (f, (n, 4)), n=(4, 3))
    static("expand_dims", (f, (n, 3)), axis=1)
    static("expand_dims", (f, (n, 3)))
    static("squeeze", (f, (n, 1, 3)), axis=1)
    static("squeeze", (f, (n, n, 3)), axis=1)
    static("reverse", (f, (n, 3)), axes=1)
    static("slice", (f, (n, 5)), start=(0, 1), size=(2, 3))
    static("one_hot", (i, (n,)), num_classes=4)
    static("one_hot", (i, (n, 3)), num_classes=4)
    for logits in (False, True):
        static("categorical_crossentropy", (f, (n, 3)), (f, (n, 3)), from_logits=logits)
        static("categorical_crossentropy", (f, (n, 5, 3)), (f, (n, 5, 3)), from_logits=logits)
        static("binary_crossentropy", (f, (n, 3)), (f, (n, 3)), from_logits=logits)
    static("sparse_categorical_crossentropy", (i, (n,)), (f, (n, 3)))
    static("sparse_categorical_crossentropy", (i, (n, 5)), (f, (n, 5, 3)))
    static("in_top_k", (f, (n, 5)), (i, (n,)), k=2)
    static("l2_normalize", (f, (n, 3)), axis=1)
    static("clip", (f, (n, 3)), min_value=0, max_value=1)
    static("relu", (f, (n, 3)), alpha=0.1, max_value=3.0, threshold=0.5)


print("# Written by make_keras_cases.py, which says how to read it, with TensorFlow %s." % tf.__version__)
for family in (elementwise, reductions, linalg, shaping, activations_and_losses, at_random, operators, keras_tests, static_shapes):
    before = len(seen)
    family()
    print("%s: %d cases" % (family.__name__, len(seen) - before), file=sys.stderr)
if wrong:
    sys.exit("\n".join(wrong))
