"""tests/data/keras_cases/reductions.py - reductions, scans and l2_normalize."""
from ask import *

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
