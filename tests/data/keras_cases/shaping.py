"""tests/data/keras_cases/shaping.py - functions of shapes."""
from ask import *


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
