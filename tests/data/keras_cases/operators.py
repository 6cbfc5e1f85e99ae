"""tests/data/keras_cases/operators.py - operators of Python on tensors."""
from ask import *


def operators():
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
