"""tests/data/keras_cases/elementwise.py - functions of each element."""
from ask import *


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
