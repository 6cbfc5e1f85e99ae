"""The Keras backend API on kassette: KERAS_BACKEND=kassette.keras, or "backend": "kassette.keras" in keras.json.

Names, arguments and defaults are those of keras.backend in Keras 2.3. As there, functions record: an update happens, and a random
number is drawn, when a function is called or a value is asked for.
"""
import builtins
import functools
import sys

import numpy as np

from . import _compat
from . import _core
from . import _nest
from ._core import (
    Tensor, abs, all, any, argmax, argmin, batch_dot, batch_flatten, batch_get_value, batch_set_value, cast, clip,
    concatenate, control_dependencies, cos, count_params, ctc_label_dense_to_sparse, cumprod, cumsum, dot, dtype, elu,
    equal, eval, exp, expand_dims, flatten, gather, get_uid, get_value, gradients, greater, greater_equal, hard_sigmoid,
    identity, in_top_k, is_placeholder, is_sparse, is_tensor, is_variable, l2_normalize, less, less_equal, log, logsumexp,
    manual_variable_initialization, map_fn, max, maximum, min, minimum, moving_average_update, name_scope, ndim,
    normalize_batch_in_training, not_equal, one_hot, permute_dimensions, pow, print_tensor, prod, relu, repeat, reset_uids, reshape,
    resize_images, resize_volumes, reverse, round, set_value, shape, sign, sin, size, slice, softplus, softsign,
    sqrt, square, squeeze, stack, stop_gradient, sum, tanh, temporal_padding, tile, to_dense, transpose, update, update_add,
    update_sub,
)


# ---- settings: Keras keeps its own, and its functions to change them cannot be replaced ----------------------------------------

_seen = (None, None, None)   # what Keras' settings were when they were last looked at


def _follow_settings():
    """Tells the library what Keras' settings are now."""
    global _seen
    common = sys.modules.get("keras.backend.common")
    if common is None:
        return
    now = common._FLOATX, common._EPSILON, common._IMAGE_DATA_FORMAT
    if now == _seen:
        return
    for tell, before, value in zip((_core.set_floatx, _core.set_epsilon, _core.set_image_data_format), _seen, now):
        if value != before:
            tell(value)
    _seen = now


def _meet_keras():
    """Gives keras.backend, which has this module as its backend, what it takes from TensorFlow's alone."""
    _compat.for_keras()
    for name in ("clear_session", "manual_variable_initialization", "get_variable_shape", "set_learning_phase"):
        setattr(sys.modules["keras.backend"], name, globals()[name])


def _with_settings(function):
    """function, which reads floatx, epsilon or the data format."""
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        _follow_settings()
        return function(*args, **kwargs)
    return wrapper


floatx, epsilon, image_data_format = map(_with_settings, (_core.floatx, _core.epsilon, _core.image_data_format))


def _set(name, value):
    common = sys.modules.get("keras.backend.common")
    getattr(common or _core, "set_" + name)(value)
    _follow_settings()


def set_floatx(floatx):
    _set("floatx", floatx)


def set_epsilon(e):
    _set("epsilon", e)


def set_image_data_format(data_format):
    _set("image_data_format", data_format)


def cast_to_floatx(x):
    return np.asarray(x, dtype=floatx())


def normalize_data_format(value):
    if value is None:
        value = image_data_format()
    data_format = value.lower()
    if data_format not in ("channels_first", "channels_last"):
        raise ValueError('The `data_format` argument must be one of "channels_first", "channels_last". Received: ' + str(value))
    return data_format


def backend():
    return "kassette.keras"


def symbolic(func):
    return func


def eager(func):
    return func


# Those with a dtype, a data format or an epsilon by default.
for _name in ("conv1d conv2d conv3d conv2d_transpose conv3d_transpose depthwise_conv2d separable_conv1d separable_conv2d local_conv1d "
              "local_conv2d pool2d pool3d bias_add spatial_2d_padding spatial_3d_padding constant zeros ones eye zeros_like ones_like "
              "std ctc_batch_cost ctc_decode").split():
    globals()[_name] = _with_settings(getattr(_core, _name))


# ---- the learning phase --------------------------------------------------------------------------------------------------------

_learning_phase = None


def learning_phase():
    """A scalar tensor to be fed, 0 for test (the default) and 1 for train, or the int that set_learning_phase chose."""
    return _core.learning_phase() if _learning_phase is None else _learning_phase


def set_learning_phase(value):
    global _learning_phase
    if value not in (0, 1):
        raise ValueError("Expected learning phase to be 0 or 1.")
    _learning_phase = int(value)


def clear_session():
    global _learning_phase
    _learning_phase = None
    _core.clear_session()


def in_train_phase(x, alt, training=None):
    uses_learning_phase = training is None
    if uses_learning_phase:
        training = learning_phase()
    if isinstance(training, (bool, int, np.bool_, np.integer)):
        chosen = x if training else alt
        return chosen() if callable(chosen) else chosen
    y = _core.in_train_phase(x, alt, training)
    if uses_learning_phase:
        y._uses_learning_phase = True
    return y


def in_test_phase(x, alt, training=None):
    return in_train_phase(alt, x, training=training)


# ---- tensors with Keras' attributes ---------------------------------------------------------------------------------------------

def int_shape(x):
    if hasattr(x, "_keras_shape"):
        return x._keras_shape
    return _core.int_shape(x)


get_variable_shape = int_shape


_infers_shapes_of_lambdas = False


def is_keras_tensor(x):
    global _infers_shapes_of_lambdas
    if not _infers_shapes_of_lambdas and "keras.layers.core" in sys.modules:   # each layer asks, before it computes its shape
        _infers_shapes_of_lambdas = True
        _compat.infer_shapes_of_lambdas(placeholder, int_shape)
    if not is_tensor(x):
        raise ValueError("Unexpectedly found an instance of type `" + str(type(x)) + "`. Expected a symbolic tensor instance.")
    return hasattr(x, "_keras_history")


@_with_settings
def variable(value, dtype=None, name=None, constraint=None):
    if hasattr(value, "tocoo"):
        value = value.astype(dtype or floatx())
    v = _core.variable(value, dtype, name or "variable")
    v._keras_shape = _core.int_shape(v)
    v._uses_learning_phase = False
    v.constraint = constraint
    v.trainable = True   # as TensorFlow's: layers list variables that are set as their attributes by it
    return v


@_with_settings
def placeholder(shape=None, ndim=None, dtype=None, sparse=False, name=None):
    x = _core.placeholder(shape, ndim, dtype, sparse, name)
    x._keras_shape = _core.int_shape(x)
    x._uses_learning_phase = False
    return x


# ---- random tensors: NumPy's generator seeds what has no seed, as with TensorFlow -------------------------------------------------

def _seed(seed):
    return np.random.randint(10e6) if seed is None else seed


@_with_settings
def random_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    return _core.random_normal(shape, mean, stddev, dtype, _seed(seed))


@_with_settings
def random_uniform(shape, minval=0.0, maxval=1.0, dtype=None, seed=None):
    return _core.random_uniform(shape, minval, maxval, dtype, _seed(seed))


@_with_settings
def random_binomial(shape, p=0.0, dtype=None, seed=None):
    return _core.random_binomial(shape, p, dtype, _seed(seed))


@_with_settings
def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    return _core.truncated_normal(shape, mean, stddev, dtype, _seed(seed))


@_with_settings
def random_uniform_variable(shape, low, high, dtype=None, name=None, seed=None):
    return variable(_core.random_uniform(shape, low, high, dtype, _seed(seed)), dtype, name)


@_with_settings
def random_normal_variable(shape, mean, scale, dtype=None, name=None, seed=None):
    return variable(_core.random_normal(shape, mean, scale, dtype, _seed(seed)), dtype, name)


def dropout(x, level, noise_shape=None, seed=None):
    return _core.dropout(x, level, noise_shape, _seed(seed))


# ---- differences from the C++ functions: Keras on TensorFlow rules here ------------------------------------------------------------

batch_normalization = _core.batch_normalization


# A cross-entropy of a result of K.sigmoid or K.softmax is computed from the logits behind it, as TensorFlow's backend does: where float32 rounds
# the result to 0 or 1, a loss computed from that has no gradient, and a model is stuck.

def sigmoid(x):
    y = _core.sigmoid(x)
    y._logits = "sigmoid", x
    return y


def softmax(x, axis=-1):
    y = _core.softmax(x, axis)
    if axis == -1 or axis == ndim(y) - 1:   # of another axis TensorFlow transposes the result, and does not look through that
        y._logits = "softmax", x
    return y


def _behind(output, function, from_logits):
    """The logits of a result of that function; otherwise what was given."""
    if not from_logits and is_tensor(output):
        made_by, logits = getattr(output, "_logits", (None, None))
        if made_by == function:
            return logits, True
    return output, from_logits


@_with_settings
def categorical_crossentropy(target, output, from_logits=False, axis=-1):
    output, from_logits = _behind(output, "softmax", from_logits)
    return _core.categorical_crossentropy(target, output, from_logits, axis)


@_with_settings
def sparse_categorical_crossentropy(target, output, from_logits=False, axis=-1):
    output, from_logits = _behind(output, "softmax", from_logits)
    return _core.sparse_categorical_crossentropy(target, output, from_logits, axis)


def binary_crossentropy(target, output, from_logits=False):
    output, from_logits = _behind(output, "sigmoid", from_logits)
    if from_logits:
        return _core.binary_crossentropy(target, output, True)
    # TensorFlow adds epsilon once more to what is clipped by it.
    small = epsilon()
    output = clip(output, small, 1 - small)
    return -(target * log(output + small) + (1 - target) * log(1 - output + small))


_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def _mean(x, axis, keepdims):
    if dtype(x) not in _INTEGERS:
        return _core.mean(x, axis, keepdims)
    # TensorFlow's mean of integers is one: the sum, divided and rounded towards 0.
    total, count = sum(x, axis, keepdims), sum(ones_like(x, dtype(x)), axis, keepdims)
    count = count + cast(equal(count, 0), dtype(x))   # of nothing 0
    quotient = total // count
    return quotient + cast(less(quotient, 0) & not_equal(quotient * count, total), dtype(x))


@_with_settings
def mean(x, axis=None, keepdims=False):
    return _mean(x, axis, keepdims)


@_with_settings
def var(x, axis=None, keepdims=False):
    if dtype(x) not in _INTEGERS:
        return _core.var(x, axis, keepdims)
    return _mean(square(x - _mean(x, axis, True)), axis, keepdims)


def arange(start, stop=None, step=1, dtype="int32"):
    # As tf.range: int32 unless an argument is of another kind. Keras casts to any dtype but int32, its default.
    kind = "int32"
    for x in (start, stop, step):
        if is_tensor(x) or isinstance(x, np.generic):
            own = str(x.dtype)
        else:
            own = "float32" if isinstance(x, float) else "int32"
        if own in _RANGES and _RANGES.index(own) > _RANGES.index(kind):
            kind = own
    y = _core.arange(start, stop, step, kind)
    return y if dtype == "int32" else cast(y, dtype)


_RANGES = ("int32", "int64", "float32", "float64")   # what tf.range counts in, the narrowest first


def repeat_elements(x, rep, axis):
    if is_tensor(x) and isinstance(rep, int) and rep == 0:   # no element, as numpy.repeat; of an axis of unknown size TensorFlow's also
        y = x[(builtins.slice(None),) * (axis % ndim(x)) + (builtins.slice(0, 0),)]
    else:
        y = _core.repeat_elements(x, rep, axis)
    sizes = list(int_shape(x))
    if sizes[axis] is not None:
        sizes[axis] *= rep
    y._keras_shape = tuple(sizes)
    return y


# ---- functions and loops -----------------------------------------------------------------------------------------------------------

def function(inputs, outputs, updates=None, fetches=None, feed_dict=None, name=None, **kwargs):
    """A callable: values for `inputs` give the values of `outputs`, and then the updates are applied.

    `inputs` and `outputs` are lists, single tensors, dicts, or nests of these; values are given and returned in the same form. What is in
    `fetches` is computed as well, and not returned. `feed_dict` has values for further placeholders, read at each call.
    """
    if kwargs:
        raise ValueError("Invalid argument " + repr(next(iter(kwargs))) + " passed to K.function with the kassette backend")
    if updates is not None and not isinstance(updates, (list, tuple)):
        raise TypeError("function: updates: a list or a tuple is expected, not " + type(updates).__name__)
    placeholders = _nest.flatten([] if inputs is None else inputs)
    for x in placeholders:
        if not is_tensor(x):
            raise TypeError("function: inputs: a tensor is expected, not " + type(x).__name__)
    keys = list(feed_dict or ())
    ranks = [ndim(x) for x in placeholders + keys]
    form = [None] * len(ranks) if keys else _nest.form([] if inputs is None else inputs)
    run = _core.function(placeholders + keys, _nest.flatten(outputs), updates or [], fetches, functools.partial(_nest.values_for, form, ranks))
    if keys:
        run = _fed(run, inputs, ranks[:len(placeholders)], keys, feed_dict)
    if isinstance(outputs, list) and not builtins.any(isinstance(y, (list, tuple, dict)) for y in outputs):
        return run
    packed = _nest.form(outputs)
    return lambda inputs: _nest.pack(packed, iter(run(inputs)))


def _fed(run, inputs, ranks, keys, feed_dict):
    """run with the values for `inputs`, followed by those of feed_dict."""
    form = _nest.form([] if inputs is None else inputs)

    def fed(values):
        if list(feed_dict) != keys:
            raise ValueError("function: feed_dict has other keys than when the function was made")
        return run(_nest.values_for(form, ranks, values) + list(feed_dict.values()))
    return fed


def switch(condition, then_expression, else_expression):
    if dtype(condition) != "bool":
        condition = cast(condition, "bool")
    return _core.switch(condition, then_expression, else_expression)


def foldl(fn, elems, initializer=None, name=None):
    if _is_nest(elems) or _is_nest(initializer):
        return _fold_nests(fn, elems, initializer, go_backwards=False)
    return _core.foldl(fn, elems, initializer, name)


def foldr(fn, elems, initializer=None, name=None):
    if _is_nest(elems) or _is_nest(initializer):
        return _fold_nests(fn, elems, initializer, go_backwards=True)
    return _core.foldr(fn, elems, initializer, name)


def _is_nest(x):
    return isinstance(x, (list, tuple)) and builtins.any(is_tensor(part) or _is_nest(part) for part in x)


def _fold_nests(fn, elems, initializer, go_backwards):
    """A fold whose elements or accumulator are several tensors: a recurrence over one sample, with the accumulator as its states."""
    parts = _nest.flatten(elems)
    if initializer is None:
        first, rest = (-1, builtins.slice(None, -1)) if go_backwards else (0, builtins.slice(1, None))
        initializer = _nest.pack(elems, iter([x[first] for x in parts]))
        parts = [x[rest] for x in parts]
    form_of_elems, form = _nest.form(elems), _nest.form(initializer)

    def step(xs, states):
        element = _nest.pack(form_of_elems, iter([squeeze(squeeze(x, -1), 0) for x in xs]))
        y = fn(_nest.pack(form, iter([squeeze(s, 0) for s in states])), element)
        new = [expand_dims(part, 0) for part in _nest.flatten(y)]
        return new[0], new

    # With a sample in front, and an axis behind for elements that are scalars.
    inputs = [expand_dims(expand_dims(x, 0), -1) for x in parts]
    states = [expand_dims(s, 0) for s in _nest.flatten(initializer)]
    last = _core.rnn(step, inputs, states, go_backwards, None, [], False, None)[2]
    return _nest.pack(form, iter([squeeze(s, 0) for s in last]))


def rnn(step_function, inputs, initial_states, go_backwards=False, mask=None, constants=None, unroll=False, input_length=None):
    # The first call is outside of the recorded step: what a layer keeps of it, such as a mask of dropout, is one for the sequence.
    first = inputs[:, 0]
    step_function(first, list(initial_states) + list(constants or []))
    last_output, outputs, new_states = _core.rnn(
        step_function, inputs, initial_states, go_backwards, mask, constants, unroll, input_length)
    phase = learning_phase()
    if is_tensor(phase) and _core.depends_on(last_output, phase):
        last_output._uses_learning_phase = True
    return last_output, outputs, new_states


if "keras.backend" in sys.modules:   # it is importing this module
    _meet_keras()
else:
    _compat.after_import("keras.backend", lambda keras_backend: keras_backend.backend() == __name__ and _meet_keras())
