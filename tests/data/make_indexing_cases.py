"""Writes tests/data/indexing_cases.txt: what NumPy's indexing makes of arrays.

    {python of NumPy} make_indexing_cases.py > indexing_cases.txt

A line has parts between bars: what is done; the shape of the array, which holds 0, 1, 2, ...; the indices, with commas between;
the shape of the result, or "error"; its elements. An index is an integer, a slice start:stop:step, `...`, `newaxis`, integers as
`i`, or a mask as `b`, followed by shape and elements. For an assignment a part with the shape of the value stands before the
result; the value holds 2, 3, 4, ... What is done is get, or what happens to the selected elements one after another: set, add,
multiply, min, max.
"""
import itertools

import numpy as np

rng = np.random.RandomState(38)


def numbers(a):
    return " ".join("%d" % v for v in np.asarray(a).ravel())


def shape(a):
    return " ".join(map(str, np.shape(a)))


def ints(sizes, low, high):
    return rng.randint(low, high, sizes) if high > low else np.zeros(sizes, int)


def mask(*sizes, chance=0.5):
    return rng.uniform(size=sizes) < chance


def word(i):
    if i is None:
        return "newaxis"
    if i is Ellipsis:
        return "..."
    if isinstance(i, slice):
        return ":".join("" if v is None else str(v) for v in (i.start, i.stop, i.step))
    if isinstance(i, np.ndarray):
        return ("b" if i.dtype == bool else "i") + " " + shape(i) + " ; " + numbers(i)
    return str(i)


def line(what, sizes, key, result, value=None):
    parts = [what, " ".join(map(str, sizes)), " , ".join(map(word, key))]
    if value is not None:
        parts.append(shape(value))
    if result is None:
        parts += ["error", ""]
    else:
        parts += [shape(result), numbers(result)]
    print(" | ".join(parts))


def get(sizes, *key):
    x = np.arange(np.prod(sizes, dtype=int)).reshape(sizes)
    try:
        result = x[key]
    except IndexError:
        result = None
    line("get", sizes, key, result)


OPS = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


def put(what, sizes, value, *key):
    x = np.arange(np.prod(sizes, dtype=int)).reshape(sizes)
    v = np.arange(2, 2 + np.prod(value, dtype=int)).reshape(value)
    try:
        if what == "set":
            # One after another: NumPy does not promise which of repeated indices wins.
            places = np.arange(x.size).reshape(sizes)[key]
            flat = x.ravel()
            for at, element in zip(places.ravel(), np.broadcast_to(v, places.shape).ravel()):
                flat[at] = element
            x = flat.reshape(sizes)
        else:
            OPS[what].at(x, key, v)
        result = x
    except (IndexError, ValueError):
        result = None
    line(what, sizes, key, result, v)


A, N, E = slice(None), None, Ellipsis
i, j = ints((3,), -2, 2), ints((3,), -3, 3)
column = ints((2, 1), -2, 2)
print("# made by make_indexing_cases.py with NumPy", np.__version__)

# several tensors: side by side, apart, broadcast, among everything else
for key in [(i, j), (column, j), (A, j, ints((3,), 0, 4)), (i, A, j), (i, E, j), (0, A, j), (i, 0, j), (i, A, 1), (A, j, -1), (E, j, j),
            (i, N, j), (N, i, j), (i, j, N), (slice(1, None), j, j), (i, slice(2, 0, -1), j), (slice(None, None, -1), j, j),
            (i, j, j), (column, j, ints((2, 3), -4, 4)), (i, j, slice(1, 3)), (i, np.array(1), A), (np.array(1), j, j), (A, np.array(-1), j),
            (np.array(0), A, np.array(2)), (ints((0,), 0, 1), j[:1]), (ints((0, 3), 0, 1), j, E), (1, j, j), (E, 0, j, j), (i, 1, N, j),
            (N, i, A, j), (A, N, j, j), (i, E, N, j), (E, i, j, A), (i, j, E), (j, j, 0), (A, A, j, N), (i, j, N, slice(0, 0))]:
    get((2, 3, 4), *key)
# out of range, too many, shapes that do not broadcast
for key in [(i, j + 9), (np.array([2]), np.array([0])), (np.array([0, -3]), 0), (i, j, j, j), (i, ints((2,), 0, 1)), (A, j, np.array([4, 0, 0])),
            (ints((0,), 0, 1), 5), (np.array([7]), j, slice(0, 0))]:
    get((2, 3, 4), *key)
# masks
x = (2, 3, 4)
all_false, all_true = np.zeros((2, 3), bool), np.ones((3, 4), bool)
for key in [(mask(2, 3, 4),), (mask(2),), (mask(2, 3),), (A, mask(3)), (A, mask(3, 4)), (E, mask(4)), (E, mask(3, 4)), (E, mask(2, 3, 4)),
            (all_false,), (A, all_true), (N, mask(2, 3)), (mask(2, 3), 1), (mask(2, 3), slice(1, 3)), (1, mask(3, 4)), (0, A, mask(4)),
            (mask(2), A, 2), (mask(2, chance=1), j[:2]), (mask(2, chance=1), A, j[:2]), (np.array([True, False]), mask(3, chance=1)),
            (np.array([True, False]), j), (np.array([[True, False, True], [False, True, False]]), j), (mask(2, 3, chance=0), np.array([], int)),
            (np.array(True),), (np.array(False),), (np.array(True), A, 1), (A, np.array(True)), (A, np.array(False), j), (np.array(True), i, j),
            (np.array(True), np.array(True), i), (mask(3),), (mask(2, 4),), (A, mask(2)), (mask(2, 3, 4, 2),), (i, mask(3, chance=1), 0),
            (N, np.array([True, True]), N, i[:2]), (mask(2, 3, chance=1), ints((2, 1), -4, 4))]:
    get(x, *key)
# sizes 0 and 1, rank 0 and 8
for sizes, key in [((), (np.array(True),)), ((), (np.array(False), N)), ((), (E,)), ((0,), (ints((0,), 0, 1),)), ((0,), (np.array([0]),)),
                   ((0, 3), (mask(0),)), ((0, 3), (mask(0, 3),)), ((0, 3), (A, j)), ((1,), (ints((4,), -1, 1),)), ((1, 1), (np.array([0, -1]), np.array([[0], [0]]))),
                   ((1, 1), (mask(1, 1, chance=1),)), ((3,), (mask(3),)), ((5,), (np.array([[0, -1], [3, 3]]),)), ((), (np.array(True), np.array(True))),
                   ((2, 0, 3), (i, A, j)), ((2, 0, 3), (i, j)), ((2, 0, 3), (mask(2, 0),))]:
    get(sizes, *key)
deep = (2, 1, 2, 1, 3, 1, 2, 2)
for key in [(i, 0, i, 0, j, 0, i, i), (E, i, i), (A, 0, i, A, j), (i, E, i), (mask(2, 1, 2), A, j), (A, A, mask(2, 1, 3), E, i[:1]), (mask(*deep),)]:
    get(deep, *key)
# every mixture of three
kinds = [1, -1, A, slice(1, None), E, N, i, j, column, np.array([True, False, False]), np.ones(3, bool), np.eye(3) == 1, np.eye(3) == 2]
for key in itertools.product(kinds, repeat=3):
    if sum(k is Ellipsis for k in key) < 2 and rng.uniform() < 0.2:
        get((3, 3, 3), *key)
# assignments
puts = [((3,), (i, j, 0)), ((), (i, j)), ((4,), (i, j)), ((3, 4), (i, j)), ((2, 3), (column, j, -1)), ((), (0,)), ((3, 4), (0,)), ((4,), (A, 1)), ((), (A, slice(0, 2))),
        ((2, 1, 1), (E,)), ((2, 3, 4), ()), ((), (slice(None, None, -1), slice(0, 3, 2), slice(3, 0, -2))), ((3, 2), (i, A, j)[:1] + (0, slice(0, 2))),
        ((3, 2), (i, slice(0, 2), j)), ((1,), (mask(2, 3, 4),)), ((), (mask(2),)), ((2, 1), (A, mask(3))), ((4,), (mask(2, 3, chance=0),)), ((), (np.array(True),)),
        ((), (np.array(False),)), ((3, 1, 4), (i, N, A)), ((3, 4), (ints((3,), 0, 1), j)), ((5,), (np.array([0, 1, 0, 1, 0]), 1, 2)), ((2, 4), (A, j)), ((0,), (ints((0,), 0, 1), 0, 0)),
        ((2,), (i, j)), ((3,), (i + 7, j, 0)), ((3,), (N, i, j, E, 1))]
for what in ["set", "add", "multiply", "min", "max"]:
    for value, key in puts:
        put(what, (2, 3, 4), value, *key)
    put(what, (), (), E)
    put(what, (), (), np.array(True))
    put(what, (0, 3), (3,), A, j)
    put(what, (1,), (4,), ints((4,), -1, 1))
    put(what, deep, (3, 2), i, E, j, 0, A, 0)
