"""tests/data/keras_cases/activations_and_losses.py - softmax and losses."""
from ask import *


def activations_and_losses():
    for shape, axis in [((4, 5), -1), ((2, 5, 3), 1), ((2, 3, 2, 2), 2), ((2, 3), 0), ((3,), -1), ((3,), 0), ((1, 1), 1), ((0, 3), 1), ((2, 3), -2), ((1, 2, 1, 2, 2), 3)]:
        case("softmax", random(shape), axis=axis)
        case("softmax", random(shape, "float64"), axis=axis)
    for dtype in FLOATS[2:]:
        case("softmax", random((2, 3), dtype))
    for v in ([1, 2, 3], [1e4, 0, -1e4], [1000, 1000], [-1000, -1000], [-inf, 0, 1], [88, 89, 90]):
        case("softmax", values(v))
    case_of_values("softmax", values([-inf, -inf]))
    case("softmax", random((2, 3)), axis=2, error="ValueError")
    case("softmax", random((2, 3)), axis=-3, error="ValueError")
    case("softmax", random(()), error="ValueError")
    case("softmax", random((2, 3), "int32"), error="TypeError")

    def probabilities(shape, dtype="float64", axis=-1):
        p = rng.randint(1, 9, shape) / 8.0
        return tf.cast(tf.constant(p), dtype)

    # In halves TensorFlow rounds each step, and its 1 - 1e-7 is 1.
    for dtype in ("float32", "float64"):
        for shape, axis in [((2, 3), -1), ((2, 3), 1), ((2, 3), 0), ((2, 3, 2), 1), ((2, 3, 2), -3), ((2, 3, 2), 2), ((1, 1), -1), ((3,), 0), ((0, 3), -1)]:
            t = probabilities(shape, dtype)
            case("categorical_crossentropy", t, probabilities(shape, dtype), axis=axis)
            # K has the true derivative where targets do not sum to 1, TensorFlow another: these do.
            t = tf.constant(np.eye(shape[axis])[rng.randint(0, shape[axis], [n for i, n in enumerate(shape) if i != axis % len(shape)])], dtype)
            t = tf.constant(np.moveaxis(t.numpy(), -1, axis))
            if shape != (0, 3):
                case("categorical_crossentropy", t, random(shape, dtype, -3, 3), from_logits=True, axis=axis)
            ids_shape = [n for i, n in enumerate(shape) if i != axis % len(shape)]
            ids = tf.constant(rng.randint(0, shape[axis], ids_shape), pick(["int32", "int64", "uint8"]))
            if len(shape) > 1:
                for logits in (False, True):
                    case("sparse_categorical_crossentropy", ids, probabilities(shape, dtype) if not logits else random(shape, dtype), from_logits=logits, axis=axis)
        case("categorical_crossentropy", values([[0, 1, 0]], dtype), values([[.375, .125, .5]], dtype))
        case("categorical_crossentropy", values([[1, 0], [0, 1]], dtype), values([[1, 0], [1, 0]], dtype))
        case("categorical_crossentropy", values([[.375, .125, .5], [.25, .5, .25]], dtype), values([[0, 1, 0], [1, 0, 0]], dtype))
        case("categorical_crossentropy", values([[1, 0, 0]], dtype), values([[2, 1, 1]], dtype))
        case_of_values("categorical_crossentropy", values([[1, 0, 0]], dtype), values([[0, 0, 0]], dtype))
        case_of_values("categorical_crossentropy", values([[1, 0]], dtype), values([[nan, 1]], dtype))
        case("categorical_crossentropy", values([[0, 0, 1], [0, 1, 0]], dtype), values([[1, 2, 3], [1e3, -1e3, 0]], dtype), from_logits=True)
        case("categorical_crossentropy", values([[.5, .25, .25]], dtype), values([[1, 2, 3]], dtype), from_logits=True)
        case("categorical_crossentropy", values([[.5, .25, .75]], dtype), values([[1, 2, 3]], dtype), from_logits=True, note="logits_gradient_of_targets_that_do_not_sum_to_1")
        # ids in every shape
        for t, o in [((2, 1), (2, 3)), ((2, 2), (2, 2, 3)), ((2, 2, 1), (2, 2, 3)), ((4,), (2, 2, 3)), ((2,), (2, 3)), ((1, 2), (2, 3)), ((2, 3, 1), (2, 3, 1)),
                     ((0,), (0, 3)), ((0, 1), (0, 3))]:
            for logits in (False, True):
                ids = tf.constant(rng.randint(0, o[-1], t), pick(["int32", "int64", "float32"]))
                case("sparse_categorical_crossentropy", ids, probabilities(o, dtype) if not logits else random(o, dtype), from_logits=logits)
        case("sparse_categorical_crossentropy", values([0, 1], "int32"), values([[0, .25, .75], [0, .25, .75]], dtype))
        case("sparse_categorical_crossentropy", values([0], "int32"), values([[.25, .25]], dtype))
        for v in ([1, 2, 3], [1000, 0, -1000], [-1000, -1000, 0]):
            case("sparse_categorical_crossentropy", values([2], "int32"), values([v], dtype), from_logits=True)
        for shape in [(2, 3), (), (3,), (0, 2), (2, 1, 2)]:
            case("binary_crossentropy", probabilities(shape, dtype), random(shape, dtype, -3, 3), from_logits=True)
            case("binary_crossentropy", probabilities(shape, dtype), tf.cast(tf.constant(rng.randint(1, 8, shape) / 8.0), dtype))
        case("binary_crossentropy", values([1, 0, 1, 0, .25, 1, 0, .5], dtype), values([0, 2, -2, 100, 1, -100, -100, 0], dtype), from_logits=True)
        case_of_values("binary_crossentropy", values([1, 0], dtype), values([nan, nan], dtype), from_logits=True)
    case("binary_crossentropy", values([1, 0, .5]), values([0, 1, 0]), epsilon_twice=True, note="epsilon_twice")
    t, o = values([[1, 0, 0]]), values([[0.5, 0.25, 0.25]])
    case("categorical_crossentropy", t, values([[.5, .5]]), error="ValueError")
    case("categorical_crossentropy", t, values([.5, .25, .25]), error="ValueError")
    case("categorical_crossentropy", t, values([[.5, .5]]), from_logits=True, error="ValueError")
    case("categorical_crossentropy", t, o, axis=2, error="ValueError")
    case("categorical_crossentropy", t, o, axis=-3, from_logits=True, error="ValueError")
    case("categorical_crossentropy", values([[1, 0]], "int32"), values([[1, 2]], "int32"), error="TypeError")
    case("categorical_crossentropy", values([[1, 0]], "float64"), values([[1, 2]], "float32"), error="TypeError")
    case("sparse_categorical_crossentropy", values([3], "int32"), o, error="ValueError")
    case("sparse_categorical_crossentropy", values([-1], "int32"), o, from_logits=True, error="ValueError")
    case("sparse_categorical_crossentropy", values([0, 1], "int32"), o, error="ValueError")
    case("sparse_categorical_crossentropy", values([0], "int32"), o, axis=2, error="ValueError", note="sparse_axis_beyond_the_rank")
    case("binary_crossentropy", t, values([[.5, .5]]), from_logits=True, error="ValueError")
    case("binary_crossentropy", values([[1.0]]), values([[.5, .5]]), epsilon_twice=True, error="ValueError", note="binary_crossentropy_of_shapes_that_differ")
    case("binary_crossentropy", values([[1.0]], "float64"), values([[.5]]), error="TypeError")

    for k in range(-1, 7):
        p = chosen([0.1, 0.2, 0.3, 0.4, 0.5], (4, 5))
        case("in_top_k", p, tf.constant(rng.randint(0, 5, 4), pick(["int32", "int64"])), k=k)
        case("in_top_k", random((3, 5)), tf.constant(rng.randint(-1, 6, 3)), k=k)
        specials = values([[nan, 1, 2], [1, inf, 2], [-inf, 1, 2], [1, 1, 1], [3, 2, 1]])
        case("in_top_k", specials, values([1, 1, 1, 2, 2], "int32"), k=k)
    case("in_top_k", random((0, 3)), values([], "int32"), k=1)
    case("in_top_k", random((2, 3)), values([0, 1, 2], "int32"), k=1, error="ValueError")
    case("in_top_k", random((3,)), values([0, 1, 2], "int32"), k=1, error="ValueError")
    case("in_top_k", random((2, 3)), values([[0], [1]], "int32"), k=1, error="ValueError")
    case("in_top_k", random((2, 3), "int32"), values([0, 1], "int32"), k=1, error="TypeError")
    case("in_top_k", random((2, 3)), values([0, 1]), k=1, error="TypeError")
