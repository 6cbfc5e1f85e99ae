"""Arguments: signatures as Keras has them, and what is said about those that do not fit."""
import ast
import inspect
import os
import pickle

import numpy as np
import pytest

import kassette.keras as K

X = K.placeholder((2, 3))
DOUBLE = K.function([X], [X * 2])


@pytest.mark.parametrize("call, error, words", [
    (lambda: K.dot(X, X), ValueError, r"dot: \(2, 3\) x \(2, 3\): inner dimensions differ"),
    (lambda: K.dot(X, [[1, 2], [3]]), ValueError, "dot: y is a ragged list"),
    (lambda: K.variable("text"), TypeError, "variable: value: a tensor, a number or an array is expected, not str"),
    (lambda: K.variable(None), TypeError, "variable: value is None; it must be a number or a tensor"),
    (lambda: K.variable([[1, 2], [3]]), ValueError, "variable: value is a ragged list"),
    (lambda: K.variable(2 ** 70), ValueError, "variable: value: an integer of more than 64 bits"),
    (lambda: K.placeholder(ndim=9), ValueError, "placeholder: ndim is 9"),
    (lambda: K.placeholder((2, "a")), TypeError, "placeholder: shape: an integer is expected, not str"),
    (lambda: K.zeros((2, -3)), ValueError, r"zeros: shape \(2, -3\); sizes must be known and not negative"),
    (lambda: K.cast(X, "float31"), TypeError, "cast: dtype: dtype 'float31' is unknown"),
    (lambda: K.sum(X, axis="x"), TypeError, "sum: axis: an integer is expected, not str"),
    (lambda: K.sum(X, keepdims=3), TypeError, "sum: keepdims: True or False is expected, not int"),
    (lambda: K.relu(), TypeError, "relu: missing a required argument: 'x'"),
    (lambda: K.relu(X, slope=2), TypeError, "relu: got an unexpected keyword argument 'slope'"),
    (lambda: K.square(X, X), TypeError, "square: too many positional arguments"),
    (lambda: K.elu(X, alpha=None), TypeError, "elu: alpha: a value is expected, not None"),
    (lambda: K.cumsum(X, axis=1.5), TypeError, "cumsum: axis: an integer of 32 bits is expected, not float"),
    (lambda: K.cumsum(X, axis=2 ** 40), TypeError, "cumsum: axis: an integer of 32 bits is expected, not int"),
    (lambda: K.one_hot(X, None), TypeError, "one_hot: num_classes: a value is expected, not None"),
    (lambda: K.foldl(3, X), TypeError, "foldl: fn: a function is expected, not int"),
    (lambda: K.conv2d(X, X, padding=3), TypeError, "conv2d: padding: text is expected, not int"),
    (lambda: K.conv2d(K.placeholder((1, 5, 5, 2)), K.placeholder((3, 3, 3, 4))), ValueError, "conv2d: "),
    (lambda: K.random_normal((2,), seed="a"), TypeError, "random_normal: seed: a number is expected, not str"),
    (lambda: K.map_fn(lambda row: "a", X), TypeError, "map_fn: what fn returned: a tensor, a number or an array is expected, not str"),
    (lambda: K.in_train_phase(X, "a"), TypeError, "in_train_phase: alt: a tensor, a number or an array is expected, not str"),
    (lambda: K.name_scope(3), TypeError, "name_scope: name: text is expected, not int"),
    (lambda: K.control_dependencies(3), TypeError, "control_dependencies: control_inputs: a list of tensors is expected, not int"),
    (lambda: K.concatenate([X, None]), TypeError, "concatenate: tensors: None where a tensor is expected"),
    (lambda: DOUBLE(np.ones(2)), ValueError, r"function: .*\(2,\), declared \(2, 3\)"),
    (lambda: DOUBLE([1], [2]), TypeError, "function: is called with several arguments; the values must be given as one list"),
    (lambda: K.function({"x": X}, [X])({"y": 1}), ValueError, "function: inputs: there is no value for 'x'"),
    (lambda: K.function([X, K.placeholder((2,))], [X])([1]), ValueError, "function: 1 value for 2 inputs"),
    (lambda: X["a"], TypeError, "an index is an integer, a slice, ..., None, a tensor or an array, not str"),
    (lambda: X[np.array([0.5, 1])], TypeError, "index: a tensor of float64; an index tensor must hold integers or bools"),
    (lambda: X[:K.sum(X)], TypeError, "a slice with a tensor of float32; a bound is an integer scalar"),
    (lambda: X[::K.shape(X)[0]], TypeError, "a slice whose step is a tensor; a step is an integer; K.gather takes rows"),
    (lambda: K.placeholder((None,), dtype="int32")[:K.shape(X)[0], :K.shape(X)[0]], ValueError, "an index of more axes than the tensor has"),
    (lambda: K.sum(X, axis=K.shape(K.placeholder((None,)))[0]), TypeError, "sum: axis: an integer is expected, not a tensor whose value waits for placeholders"),
    (lambda: K.cumsum(X, axis=K.constant(1.0)), TypeError, "cumsum: axis: an integer is expected, not a tensor of float32"),
    (lambda: K.map_fn(lambda row: (row, row), X), TypeError, "map_fn: fn returned a list of tensors; give dtype as a list, one for each"),
    (lambda: K.map_fn(lambda row: (row, row), X, dtype=("float32",)), ValueError, "map_fn: fn returned 2 tensors; it must return 1"),
    (lambda: K.map_fn(lambda row: (row, row), X, dtype=("float32", "int32")), TypeError, "map_fn: fn returned float32; it must be int32"),
    (lambda: X ^ X, TypeError, r"logical_xor: float32; both must be bool; cast them \(K.cast\)"),
    (lambda: K.placeholder((2, 2, 3)) @ K.placeholder((2, 4, 3)), ValueError, r"matmul: \(2, 2, 3\) x \(2, 4, 3\): inner dimensions differ, 3 against 4"),
    (lambda: K.sqrt(K.placeholder((2,), dtype="int32")), TypeError, r"sqrt: x is int32, not a float dtype; cast it first \(K.cast\)"),
    (lambda: K.placeholder((2,), dtype="int32") + X, TypeError, r"add: int32 and float32; cast one of them \(K.cast\)"),
    (lambda: DOUBLE([np.ones((2, 4))]), ValueError, r"function: .*\(2, 4\)"),
    (lambda: DOUBLE([]), ValueError, "function: 0 values for 1 input"),
    (lambda: K.function([], [], bogus=1), ValueError, "Invalid argument 'bogus' passed to K.function with the kassette backend"),   # as on TensorFlow
    (lambda: X + "a", TypeError, r"unsupported operand type\(s\) for \+: 'Tensor' and 'str'"),
    (lambda: {} @ X, TypeError, r"unsupported operand type\(s\) for @: 'dict' and 'Tensor'"),
    (lambda: X * None, TypeError, r"unsupported operand type\(s\) for \*: 'Tensor' and 'NoneType'"),
    (lambda: 1j - X, TypeError, r"unsupported operand type\(s\) for -: 'complex' and 'Tensor'"),
    (lambda: X < "a", TypeError, "'<' not supported between instances of 'Tensor' and 'str'"),
    (lambda: X / np.array(["a"]), TypeError, "divide: an array of dtype <U1: tensors do not support it"),
    (lambda: [1, "a", 3] - X, TypeError, "subtract: a tensor, a number or an array is expected, not str"),
    (lambda: X + [[1, 2], [3]], ValueError, "add: y is a ragged list"),
    (lambda: K.function([X, 1], [X]), TypeError, "function: inputs: a tensor is expected, not int"),
    (lambda: K.function([X], ["a"]), TypeError, "function: outputs: a tensor, a number or an array is expected, not str"),
    (lambda: K.function([X], [X], updates=3), TypeError, "function: updates: a list or a tuple is expected, not int"),
    (lambda: K.function([X], [X], updates=[(3, 4)]), TypeError, "function: updates: a pair of a variable and a value is expected, not int"),
    (lambda: K.set_value(K.variable([1.0]), [1.0, 2.0]), ValueError, r"set_value: .*\(2,\)|set_value: .*\(2\)"),
    (lambda: K.set_value(3, 4), TypeError, "set_value: x: a tensor is expected, not int"),
    (lambda: K.batch_set_value([1]), TypeError, "batch_set_value: tuples: a pair of a variable and a value is expected, not int"),
    (lambda: K.update(K.constant(1.0), 2.0), TypeError, "update: .*variable"),
    (lambda: K.gradients(K.constant(1.0), [K.constant(1.0)]), ValueError, "gradients: .*not recorded"),
    (lambda: K.is_keras_tensor(np.ones(2)), ValueError, "Expected a symbolic tensor"),
    (lambda: K.rnn(lambda x, s: 3, K.placeholder((2, 3, 4)), [K.placeholder((2, 4))]), TypeError, "rnn: the step returned no pair"),
    (lambda: K.set_floatx(3), (TypeError, ValueError), "text is expected|Unknown floatx"),
])
def test_errors_name_function_and_argument_in_one_line(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert "\n" not in str(caught.value) and "::" not in str(caught.value)


def test_operators_leave_what_they_do_not_know_to_the_other_side():
    class Quantity:
        def __radd__(self, x):
            return "ours"

        __rmatmul__ = __radd__

    assert X + Quantity() == "ours" and X @ Quantity() == "ours"
    with pytest.raises(TypeError, match="'Tensor' and 'Quantity'"):
        X - Quantity()


def test_functions_have_signatures_and_pickle():
    assert str(inspect.signature(K.elu)) == "(x: 'Value', alpha: 'Number' = 1.0)"
    assert [p.default for p in inspect.signature(K.conv2d).parameters.values()][2:] == [(1, 1), "valid", None, (1, 1)]
    assert K.sqrt.__name__ == "sqrt" and pickle.loads(pickle.dumps(K.sqrt)) is K.sqrt


def test_signatures_are_those_of_keras():
    keras = pytest.importorskip("keras")
    with open(os.path.join(os.path.dirname(keras.__file__), "backend", "tensorflow_backend.py")) as source:
        functions = [f for f in ast.parse(source.read()).body if isinstance(f, ast.FunctionDef) and not f.name.startswith("_")]
    compared = 0
    for f in functions:
        if f.name in ("get_session", "set_session", "v1_variable_initialization", "is_symbolic"):   # TensorFlow's
            continue
        parameters = list(inspect.signature(getattr(K, f.name)).parameters.values())
        if f.name == "function":   # `fetches`, `feed_dict` and `name` are among its **kwargs
            parameters = parameters[:3]
        defaults = [ast.literal_eval(d) for d in f.args.defaults]
        assert [p.name for p in parameters] == [a.arg for a in f.args.args], f.name
        assert [p.default for p in parameters if p.default is not p.empty] == defaults, f.name
        compared += 1
    assert compared > 140
