"""tests/data/keras_cases/ask.py - asks TensorFlow's Keras for a value and its gradients, and writes the line of a case."""
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
    """That of Keras 2.2.5; 2.15 adds epsilon inside the logarithms too."""
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
        # TensorFlow gives something although K refuses it.
        if not note:
            wrong.append("not refused: " + line)
        return emit("%s -> %s!" % (head, error))
    emit(line)


def by_numpy(fn, y, *arrays, **args):
    """The value that NumPy gives, where K has that."""
    emit(head_text(fn, args, [tensor_text(t, exact=True) for t in arrays]) + " -> " + tensor_text(y))


def case_of_values(fn, *arrays, **args):
    """The value alone."""
    y = FUNCTIONS[fn](list(arrays), **args)
    emit(head_text(fn, args, [tensor_text(t, exact=True) for t in arrays]) + " -> " + tensor_text(y))


def refused(fn, *arrays, error, **args):
    """K's error, TensorFlow not asked."""
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


SIZES = tuple(map(int, sys.argv[2:])) or (1, 2, 3)


def shape_of_rank(low, high, sizes=SIZES):
    return tuple(int(n) for n in rng.choice(sizes, rng.randint(low, high + 1)))
