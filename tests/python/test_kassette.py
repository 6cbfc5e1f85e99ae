"""The Python package by itself: tensors, arrays, errors, functions, threads."""
import functools
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import kassette
import kassette.keras as K
from kassette import _core


# ---- tensors as objects ------------------------------------------------------------------------------------------------------------

def test_a_tensor_keeps_its_attributes_when_it_comes_back():
    x = K.placeholder((None, 2))
    y = K.square(x)
    y._keras_history = ("layer", 0, 0)
    assert K.cast(y, "float32") is y   # the C++ function returns the same tensor
    v = K.variable([1.0, 2.0])
    updated = {v: 1}
    assert updated[v] == 1 and v == v and v != K.variable([1.0, 2.0])
    assert len({x, y, v, v}) == 3


def test_a_tensor_is_collected_with_what_refers_to_it():
    class Layer:
        pass

    layer, x = Layer(), K.placeholder((2,))
    layer.output = x
    x._keras_history = (layer, 0, 0)
    gone = weakref.ref(layer)
    del layer, x
    gc.collect()
    assert gone() is None


def test_truth_length_and_iteration():
    x = K.placeholder((None, 2))
    for use in (bool, len, list, np.asarray, float):
        with pytest.raises((TypeError, NotImplementedError)):
            use(x)
    with pytest.raises(TypeError, match="K.switch"):
        bool(K.sum(x))
    assert bool(K.constant(1)) and not bool(K.constant(0))
    assert len(K.placeholder((3, 2))) == 3
    assert [K.int_shape(row) for row in K.placeholder((3, 2))] == [(2,)] * 3
    assert K.int_shape(next(iter(K.placeholder((2 ** 40, 2))))) == (2,)   # a row is made when it is asked for
    assert np.asarray(K.constant([1, 2])).tolist() == [1, 2]


def test_shape_dtype_name_and_text():
    x = K.placeholder((None, 2), name="x")
    assert (x.shape, x.dtype, x.ndim, x.name) == ((None, 2), "float32", 2, "x")
    assert repr(x) == "<kassette.Tensor 'x' shape=(None, 2) dtype=float32>"
    with K.name_scope("outer") as outer:
        with K.name_scope("inner") as inner:
            assert (outer, inner) == ("outer/", "outer/inner/")
            assert K.variable(1.0, name="w").name == "outer/inner/w"
            for root in (None, ""):
                with K.name_scope(root) as name:
                    assert name == "" and K.variable(1.0, name="w").name == "w"
            with K.name_scope(outer) as again, K.name_scope(None, "default"):
                assert again == outer and K.variable(1.0, name="w").name == "outer/default/w"
            assert K.variable(1.0, name="w").name == "outer/inner/w"
    assert K.variable(1.0).name == "variable"
    assert K.int_shape(K.placeholder(ndim=3)) == (None, None, None)


def test_results_have_the_names_that_were_asked_for():
    x = K.ones((2, 3))
    with K.name_scope("scope"):
        for y in (K.constant(1.0, name="y"), K.zeros((2,), name="y"), K.ones((2,), name="y"), K.eye(2, name="y"), K.zeros_like(x, name="y"),
                  K.ones_like(x, name="y"), K.identity(x, name="y"), K.size(x, name="y"), K.map_fn(lambda row: row, x, name="y"),
                  K.foldl(lambda a, row: a + row, x, name="y"), K.variable(1.0, name="y"), K.placeholder((2,), name="y")):
            assert y.name == "scope/y"
    assert x.name == ""


def test_a_shape_is_a_tuple_with_the_methods_of_tensorflows():
    x = K.placeholder((None, 2))
    assert isinstance(x.shape, tuple) and x.shape == (None, 2) and x.get_shape() == x.shape
    assert x.shape.as_list() == [None, 2] and x.shape.ndims == x.shape.rank == 2 and not x.shape.is_fully_defined()
    assert x.shape[1:].num_elements() == 2 and x.shape.num_elements() is None and x.shape[1:].concatenate((3,)).as_list() == [2, 3]
    assert type(K.int_shape(x)) is tuple and pickle.loads(pickle.dumps(x.shape)).as_list() == [None, 2]
    assert K.placeholder(None).shape is None


def test_dropout_at_a_rate_that_is_a_tensor():
    rate, x = K.variable(0.0), K.ones((200, 100))
    f = K.function([], [K.dropout(x, rate, noise_shape=(None, 1))])
    assert (f([])[0] == 1).all()
    K.set_value(rate, 0.75)
    y = f([])[0]
    assert set(np.unique(y)) == {0.0, 4.0} and (y == y[:, :1]).all() and 20 < (y[:, 0] > 0).sum() < 80


def test_operators_with_numbers_and_arrays_on_either_side():
    x = K.variable([[1.0, 2.0], [3.0, 4.0]])
    array = np.array([[1.0, 2.0], [3.0, 4.0]])   # float64: takes the tensor's dtype
    for y in (x + 1, 1 + x, x - array, array - x, x * np.float64(2), np.float64(2) * x, x / array, array / x, x ** 2, 2 ** x, -x, abs(x), x // 2,
              x % 2, x @ array, array @ x):
        assert isinstance(y, kassette.Tensor) and y.dtype == "float32"
    np.testing.assert_allclose(K.eval(array - x), 0)
    np.testing.assert_allclose(K.eval(array @ x), array @ array)
    assert K.eval(x > 2).tolist() == [[False, False], [True, True]]
    assert K.eval(2 > x).tolist() == [[True, False], [False, False]]


@pytest.mark.parametrize("key", [0, -1, slice(1, None), (slice(None), 1), (Ellipsis, 0), (None, 1), (0, slice(None, None, -1)), (), (slice(0, 9, 2), slice(None))],
                         ids=str)
def test_indexing_as_numpy(key):
    array = np.arange(12, dtype="float32").reshape(3, 4)
    np.testing.assert_array_equal(K.eval(K.variable(array)[key]), array[key])


ROWS, COLUMNS = np.array([2, 0, -1]), np.array([[1], [-4]])


@pytest.mark.parametrize("key", [ROWS, (ROWS, COLUMNS), (slice(None), COLUMNS), ([0, 2], slice(1, 3)), (0, None, [1, -1]), np.arange(12).reshape(3, 4) % 5 > 1,
                                 (np.array([True, False, True]), 1), (Ellipsis, [True, False, False, True]), (slice(None), []), (None, ROWS, Ellipsis, [1, 1, 2])], ids=str)
def test_indexing_by_arrays_and_masks_as_numpy(key):
    array = np.arange(12, dtype="float32").reshape(3, 4)
    x = K.variable(array)
    np.testing.assert_array_equal(K.eval(x[key]), array[key])
    tensors = tuple(K.constant(k, dtype=k.dtype.name) if isinstance(k, np.ndarray) else k for k in (key if isinstance(key, tuple) else (key,)))
    np.testing.assert_array_equal(K.eval(x[tensors]), array[key])
    assert K.eval(x[x > 5]).tolist() == [6, 7, 8, 9, 10, 11]


# ---- arrays ------------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64".split())
@pytest.mark.parametrize("make", [lambda a: a, lambda a: a[::-1, 1:], lambda a: a.T, lambda a: a[:0], lambda a: a[:1, :1].reshape(()), np.asfortranarray,
                                  lambda a: a.astype(a.dtype.newbyteorder(">"))], ids="whole view transposed empty scalar fortran swapped".split())
def test_arrays_there_and_back(dtype, make):
    array = make((np.arange(12).reshape(3, 4) * 5 % 7).astype(dtype))
    x = K.constant(array, dtype)
    back = K.eval(x)
    assert x.dtype == dtype and back.shape == array.shape
    np.testing.assert_array_equal(back, array)


def test_arrays_are_copies():
    array = np.ones((2, 2), "float32")
    v = K.variable(array)
    f = K.function([K.placeholder((2, 2))], [v * 1])
    x = K.placeholder((2, 2))
    same = K.function([x], [x, K.reshape(x, (4,))])
    fed, flat = same([array])
    array[:] = 7
    assert fed.max() == flat.max() == K.get_value(v).max() == 1
    value = K.get_value(v)
    value[:] = 5   # writable, and nobody's but ours
    assert K.get_value(v).max() == 1 and f([array])[0].max() == 1


def test_large_results_are_not_copied_where_nobody_else_sees_them():
    array = np.random.RandomState(0).normal(size=(100, 200)).astype("float32")
    x, v, c = K.placeholder((None, 200)), K.variable(array), K.constant(array)
    twice = x * 2
    f = K.function([x], [twice, twice, K.relu(x), v, x, c, K.reshape(v, (200, 100))])
    results = f([array])
    assert results[2].base is not None and all(y.flags.writeable and y.flags.c_contiguous for y in results)
    want = [y.copy() for y in results]
    for i, y in enumerate(results):   # none shares memory with another, a variable, the feed or a later result
        y[:] = -7
        assert all((other == w).all() for other, w in zip(results[i + 1:], want[i + 1:]))
    assert all((a == b).all() for a, b in zip(f([array]), want))
    assert (K.get_value(v) == array).all() and (K.eval(c) == array).all()
    relu = f([array])[2]
    del f, x, twice
    gc.collect()
    assert (relu == np.maximum(array, 0)).all()   # the array keeps its memory


def test_unsigned_integers_and_what_tensors_do_not_hold():
    assert K.constant(np.array([1, 2], "uint32"), "int64").dtype == "int64"
    for bad in (np.array(["a"]), np.array([1j]), np.array([object()])):
        with pytest.raises(TypeError, match="tensors do not support it"):
            K.constant(bad)
    with pytest.raises(ValueError, match="rank 9"):
        K.constant(np.zeros((1,) * 9))


def test_scalars_are_numpy_scalars_and_lists_mix():
    x = K.placeholder((2,))
    total, rows = K.function([x], [K.sum(x), K.stack([x, [3.0, 4.0]])])([[1, 2]])
    assert isinstance(total, np.float32) and total == 3
    assert rows.tolist() == [[1, 2], [3, 4]]
    a = K.constant(5.0)
    assert K.eval(K.constant(1.0) + [1, a, np.float64(2)]).tolist() == [2, 6, 3]


def test_floatx_is_the_default():
    try:
        K.set_floatx("float64")
        assert K.variable([1.0]).dtype == K.placeholder((2,)).dtype == K.zeros((2,)).dtype == "float64"
        assert K.cast_to_floatx([1]).dtype == np.float64
    finally:
        K.set_floatx("float32")
    with pytest.raises(ValueError):
        K.set_floatx("float31")
    assert K.floatx() == "float32" and K.zeros((1,)).dtype == "float32"


# ---- what Keras builds is recorded -------------------------------------------------------------------------------------------------

def test_updates_wait_for_the_function():
    v = K.variable([1.0, 2.0])
    x = K.placeholder((2,))
    f = K.function([x], [K.sum(v * x)], updates=[K.update_add(v, x), ])
    assert K.get_value(v).tolist() == [1, 2]
    assert f([[1, 1]])[0] == 3 and K.get_value(v).tolist() == [2, 3]
    g = K.function([], [v], updates=[(v, v * 2)])
    assert g([])[0].tolist() == [2, 3] and K.get_value(v).tolist() == [4, 6]
    with K.control_dependencies([K.update(v, [0.0, 0.0])]):
        after = v + 1
    assert K.eval(after).tolist() == [1, 1]


def test_feed_dict_is_read_at_each_call_and_fetches_are_computed():
    x, y = K.placeholder(()), K.placeholder(())
    v, w = K.variable(10.0), K.variable(10.0)
    values = {y: 1.0}
    f = K.function([x], [x + y], updates=[(v, x + 10.0)], fetches=[K.update(w, y * 10.0)], feed_dict=values)
    assert f([10.0]) == [11.0] and [K.get_value(v), K.get_value(w)] == [20.0, 10.0]
    values[y] = np.float64(4)
    assert f([20.0]) == [24.0] and [K.get_value(v), K.get_value(w)] == [30.0, 40.0]
    assert f([10.0, 2.0]) == [14.0]   # as with TensorFlow, what is left over is ignored
    with pytest.raises(ValueError, match="function: 0 values for 1 input"):
        f([])
    values[K.placeholder(())] = 1.0
    with pytest.raises(ValueError, match="function: feed_dict has other keys"):
        f([20.0])


def test_a_single_output_gives_a_single_value():
    x = K.placeholder((2,))
    assert K.function([x], x * 2)([[1, 2]]).tolist() == [2, 4]


def test_lists_of_numbers_are_values_and_lists_of_arrays_are_stacked_where_they_fit():
    x, rows = K.placeholder((None,)), K.placeholder((None, 2))
    assert K.function(x, 2 * x)([1, 2]).tolist() == K.function([x], [2 * x])([[1, 2]])[0].tolist() == [2, 4]
    assert K.function([rows], [rows * 2])([[np.ones(2), np.zeros(2)]])[0].tolist() == [[2, 2], [0, 0]]
    assert K.function([rows], [rows * 2])([[np.ones(2)]])[0].tolist() == [[2, 2]]
    assert K.function([rows], [rows * 2])([[np.ones((1, 2))]])[0].tolist() == [[2, 2]]


def test_a_variable_takes_the_value_that_its_initialiser_has_now():
    v = K.variable(K.random_uniform((3,), seed=1))
    assert not v.symbolic and (K.get_value(v) == K.get_value(v)).all()
    with pytest.raises(ValueError):
        K.variable(K.placeholder((2,)) + 1)


def test_gradients_of_any_order_and_none():
    x, y = K.variable(3.0), K.variable(1.0)
    g, none = K.gradients(x * x * x, [x, y])
    assert none is None and K.eval(g) == 27 and K.eval(K.gradients(g, [x])[0]) == 18
    assert K.eval(K.gradients([x * x, x], [x])[0]) == 7   # of a list of losses, of their sum


def test_learning_phase():
    x = K.placeholder((2,))
    y = K.in_train_phase(lambda: x * 2, x)
    assert y._uses_learning_phase
    f = K.function([x, K.learning_phase()], [y])
    assert f([[1, 2], 1])[0].tolist() == [2, 4] and f([[1, 2], 0])[0].tolist() == [1, 2]
    try:
        K.set_learning_phase(1)
        assert K.learning_phase() == 1 and K.function([x], [K.in_train_phase(x * 2, x)])([[1, 2]])[0].tolist() == [2, 4]
    finally:
        K.clear_session()
    with pytest.raises(ValueError):
        K.set_learning_phase(2)


def test_rnn_keeps_one_mask_for_the_sequence():
    x, state = K.placeholder((None, 5, 4)), K.placeholder((None, 4))
    cell = {}

    def step(x_t, states):
        if "mask" not in cell:   # as Keras' cells do
            cell["mask"] = K.dropout(K.ones_like(x_t), 0.5)
        return x_t * cell["mask"], [states[0] + x_t]

    last, outputs, states = K.rnn(step, x, [state])
    y = K.function([x, state], [outputs])([np.ones((3, 5, 4)), np.zeros((3, 4))])[0]
    assert (y == y[:, :1]).all() and set(np.unique(y)) <= {0.0, 2.0}
    K.eval(K.ones_like(K.constant([1.0])) * 1)   # the mask is no part of the step: it can be used elsewhere
    assert K.function([x, state], [cell["mask"]])([np.ones((3, 5, 4)), np.zeros((3, 4))])[0].shape == (3, 4)


def test_folds_maps_and_branches():
    x = K.placeholder((None, 2))
    assert K.function([x], [K.foldl(lambda a, b: a + b, x)])([np.ones((5, 2))])[0].tolist() == [5, 5]
    assert K.function([x], [K.map_fn(lambda r: K.sum(r) * 2, x)])([np.ones((5, 2))])[0].tolist() == [4] * 5
    f = K.function([x], [K.switch(K.sum(x) > 0, lambda: x, lambda: -x)])
    assert f([[[1, 2]]])[0].tolist() == [[1, 2]] and f([[[-1, -2]]])[0].tolist() == [[1, 2]]


def test_folds_of_several_tensors():
    # foldl(v -> (sum, product)), as on TensorFlow 1.15: (3, 2), and functools.reduce on lists
    numbers = [1.0, 2.0, 4.0]
    x, rows = K.placeholder((None,)), K.placeholder((None, 2))
    both = lambda acc, v: (acc[0] + v, acc[1] * v)   # noqa: E731
    total, product = K.foldl(both, x, initializer=(K.constant(0.0), K.constant(1.0)))
    assert [float(v) for v in K.function([x], [total, product])([np.array(numbers)])] == [7, 8]
    for fold, order in ((K.foldl, 1), (K.foldr, -1)):
        minus = lambda acc, v: (v[0] - acc[0], acc[1] - v[1])   # noqa: E731
        got = K.function([x, rows], list(fold(minus, (x, rows))))([np.array(numbers), np.arange(6.0).reshape(3, 2)])
        want = functools.reduce(minus, list(zip(numbers, np.arange(6.0).reshape(3, 2)))[::order])
        assert got[0] == want[0] and (got[1] == want[1]).all()


def test_elements_may_be_repeated_no_times():
    x = K.placeholder((None, 3))
    for axis in (0, 1, -1):
        y = K.repeat_elements(x, 0, axis)
        assert K.function([x], [y])([np.ones((2, 3))])[0].shape == np.repeat(np.ones((2, 3)), 0, axis).shape


def test_print_tensor_prints_where_python_does(capsys):
    x = K.placeholder((1, 1))
    K.function([x], [K.print_tensor(x, "msg")])([[[1.0]]])
    assert capsys.readouterr().out == "msg [[1.]]\n"


def test_sparse():
    sparse = pytest.importorskip("scipy.sparse")
    m = sparse.random(4, 3, 0.5, "csr", "float32", np.random.RandomState(0))
    x = K.placeholder((None, 3), sparse=True)
    w = K.variable(np.ones((3, 2)))
    f = K.function([x], [K.dot(x, w), K.to_dense(x)])
    product, dense = f([m])
    np.testing.assert_allclose(product, m.toarray() @ np.ones((3, 2)), rtol=1e-6)
    np.testing.assert_array_equal(dense, m.toarray())
    np.testing.assert_array_equal(K.eval(K.variable(m)), m.toarray())
    assert K.is_sparse(x) and K.is_sparse(K.variable(m)) and not K.is_sparse(w)


def test_exceptions_of_the_user_pass_through():
    class Mine(Exception):
        pass

    def raises(*_):
        raise Mine("here")

    x = K.placeholder((2, 3, 4))
    for call in (lambda: K.foldl(raises, x), lambda: K.map_fn(raises, x), lambda: K.rnn(raises, x, [K.placeholder((2, 4))]),
                 lambda: K.switch(K.placeholder((), dtype="bool"), raises, raises), lambda: K.in_train_phase(raises, x)):
        with pytest.raises(Mine, match="here"):
            call()
    assert K.eval(K.square(K.constant(2.0))) == 4   # the scopes are left


# ---- the process -------------------------------------------------------------------------------------------------------------------

def test_other_threads_run_while_a_function_does():
    x = K.placeholder((700, 700))
    f = K.function([x], [K.dot(K.dot(x, x), K.dot(x, x))])
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(1)
            done.wait(0.0005)

    t = threading.Thread(target=tick)
    t.start()
    for _ in range(10):
        f([np.ones((700, 700), "float32")])
    done.set()
    t.join()
    assert len(ticks) > 10


def test_four_threads_get_the_same_bits():
    w = K.variable(np.random.RandomState(0).normal(size=(50, 50)))
    x = K.placeholder((None, 50))
    f = K.function([x], [K.softmax(K.dot(x, w))])
    data = np.random.RandomState(1).normal(size=(64, 50))
    want, got = f([data])[0], [[] for _ in range(4)]

    def run(i):
        for _ in range(50):
            got[i].append(f([data])[0])

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert all((y == want).all() for ys in got for y in ys)


def test_fork():
    w = K.variable(np.ones((40, 40)))
    f = K.function([], [K.sum(K.dot(w, w))])
    want = f([])[0]
    child = os.fork()
    if child == 0:
        os._exit(0 if f([])[0] == want else 1)
    assert os.waitpid(child, 0)[1] == 0 and f([])[0] == want


def cpu_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_control_c():
    program = """
import numpy as np, kassette.keras as K, time
x, w = K.placeholder((None,)), K.variable(np.ones((200, 200)))
f = K.function([x], [K.foldl(lambda a, b: K.dot(a, w) * 0.005 + b, x, initializer=w * 1)])
data = np.zeros(200000, 'float32')
start = time.time()
f([data[:500]])
whole = 400 * (time.time() - start)
print('ready', flush=True)
start = time.time()
try:
    f([data])
    print('finished')
except KeyboardInterrupt:
    print('interrupted', K.eval(K.constant(1.0) + 1), time.time() - start < 0.7 + whole / 4)
"""
    # What starts in the background of a shell ignores the signal, and passes that on.
    p = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    assert p.stdout.readline() == "ready\n"
    begin, deadline = cpu_seconds(p.pid), time.monotonic() + 20
    while cpu_seconds(p.pid) < begin + 0.5 and time.monotonic() < deadline:   # until it is at work
        pass
    p.send_signal(signal.SIGINT)
    out, _ = p.communicate(timeout=60)
    assert out.strip() == "interrupted 2.0 True"


def test_the_environment_of_keras_is_understood_without_keras():
    out = subprocess.run([sys.executable, "-c", "import kassette.keras as K; print(K.eval(K.constant([1.0]) + 1))"], capture_output=True, text=True,
                         env=dict(os.environ, KERAS_BACKEND="kassette.keras"))
    assert out.stdout == "[2.]\n" and out.stderr == ""


def test_nodes_are_freed():
    gc.collect()
    before = _core.live_nodes()
    for _ in range(20):
        x = K.placeholder((None, 3))
        w = K.variable(np.ones((3, 3)))
        loss = K.sum(K.dot(x, w))
        f = K.function([x], [loss], updates=[(w, w - K.gradients(loss, [w])[0])])
        f([np.ones((2, 3))])
    del x, w, loss, f
    gc.collect()
    assert _core.live_nodes() <= before
