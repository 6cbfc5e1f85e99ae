"""tests/data/keras_cases/linalg.py - products, transposes and gather."""
from ask import *


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
