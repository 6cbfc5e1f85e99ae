"""tests/data/keras_cases/keras_tests.py - the calls of Keras' own tests."""
from ask import *


def keras_tests():
    def x(*shape):
        return tf.constant(rng.randint(-32, 32, shape) / 64.0, "float32")

    case("dot", x(4, 2), x(2, 4))
    case("dot", x(4, 2), x(5, 2, 3))
    for a, b, axes in [((4, 2, 3), (4, 5, 3), (2, 2)), ((4, 2, 3), (4, 3), (2, 1)), ((4, 2), (4, 2, 3), (1, 1)), ((32, 20), (32, 20), 1),
                       ((32, 20), (32, 20), (1, 1)), ((7, 3, 4, 5), (7, 2, 3, 4), (2, 3)), ((7, 3, 4, 5), (7, 2, 4), 2),
                       ((7, 3, 4), (7, 2, 3, 4), (2, 3)), ((7, 4, 3), (7, 3, 5), (2, 1)), ((7, 4), (7, 3, 4), (1, 2)), ((7, 4), (7, 4), None)]:
        case("batch_dot", x(*a), x(*b), axes=axes)
    case("transpose", x(4, 2))
    for axes in (1, (1, 2), (0, -1)):
        case("reverse", x(4, 3, 2), axes=axes)
    case("gather", values(np.arange(60), shape=(10, 2, 3)), tf.constant([1, 3, 7, 9]))

    case("reshape", x(4, 2), shape=(8, 1))
    case("permute_dimensions", x(4, 2, 3), pattern=(2, 0, 1))
    case("repeat", x(4, 1), n=3)
    case("flatten", x(4, 1))
    case("batch_flatten", x(20, 2, 5))
    case("expand_dims", x(4, 3), axis=-1)
    case("expand_dims", x(4, 3, 2), axis=1)
    case("squeeze", x(4, 3, 1), axis=2)
    case("squeeze", x(4, 1, 1), axis=1)
    case("reshape", x(4, 3, 1, 1), shape=(4, 3, 1, 1))
    for shape in [(2,), (2, 3), (2, 3, 4)]:
        for axis in range(len(shape)):
            case("repeat_elements", x(*shape), rep=3, axis=axis)
    for shape, n in [((3, 4), 2), ((3, 4), (2, 1)), ((3, 4, 5), 2), ((3, 4, 5), (1, 2)), ((3, 4, 5), (3, 1, 2))]:
        case("tile", x(*shape), n=n)
    for a, b, axis in [((5, 2), (7, 2), 0), ((5, 4, 6), (5, 3, 6), 1), ((5, 4, 6, 10), (5, 4, 6, 2), 3), ((5, 4, 6, 3), (5, 4, 6, 2), -1)]:
        case("concatenate", x(*a), x(*b), axis=axis)
        if np.prod(a) < 800:
            case("stack", x(*a), x(*a), axis=axis)
    for shape, start, size in [((2, 5), (0, 1), (2, 3)), ((2, 5), (1, 0), (1, 4)), ((3, 2, 3), (1, 1, 0), (1, 1, 3)), ((3, 2, 3), (1, 0, 0), (1, 2, 3)),
                               ((3, 2, 3), (1, 0, 0), (2, 1, 3))]:
        case("slice", x(*shape), start=start, size=size)
    case("slice", x(3, 2, 3), start=(1, 0, 0, 0), size=(2, 1, 3), error="ValueError")
    case("one_hot", tf.constant(rng.randint(0, 20, (30, 10))), num_classes=20)

    for fn in ("max", "min", "mean", "var", "std", "prod", "any", "all"):
        case(fn, x(4, 2))
        case(fn, x(4, 2), axis=1, keepdims=True)
        case(fn, x(4, 2, 3), axis=[1, -1])
    case("mean", x(4, 2, 3), axis=-1, keepdims=True)
    for fn in ("argmax", "argmin"):
        case(fn, x(4, 2))
        case(fn, x(4, 2), axis=1)
    for fn in "square abs sqrt exp round sign cos sin log".split():
        t = x(4, 2)
        (case_of_values if fn in ("log", "sqrt") else case)(fn, t)
    case("pow", x(4, 2), y=3)
    case("clip", x(4, 2), min_value=0.4, max_value=0.6)
    for fn in "equal not_equal greater greater_equal less less_equal maximum minimum".split():
        case(fn, x(4, 2), x(4, 2))
    for fn in ("cumsum", "cumprod"):
        t = tf.where(x(4, 2) == 0, 0.25, x(4, 2) + 0.015625)
        case(fn, tf.where(t == 0, 0.25, t))
        case(fn, tf.where(t == 0, 0.25, t), axis=1)
    for shape in [(3,), (1, 3), (2, 1), (4, 2), (4, 2, 3)]:
        for axis, keepdims in [(None, False), (0, False), (-1, False), (-1, True)] + ([(1, False), (1, True)] if len(shape) > 1 else []) + (
                [([1, -1], False), ([1, -1], True)] if len(shape) > 2 else []):
            case("logsumexp", x(*shape), axis=axis, keepdims=keepdims)
    for shape in [(4, 2), (2, 3)]:
        low = x(*shape)
        case("clip", x(*shape), low, low + 1)

    for alpha, top, threshold in [(0., None, 0.), (.1, None, 0.), (0., 5., 0.), (0., None, .8), (.1, 5., 0.), (.1, None, .8), (0., 5., .8), (.1, 5., .8),
                                  (.1, 0., .8), (.1, 5., -2.8), (.1, 9., .8)]:
        case("relu", x(4, 2), alpha=alpha, max_value=top, threshold=threshold)
    case("softsign", x(4, 10))
    case("softplus", x(4, 10))
    case("elu", x(4, 10), alpha=0.5)
    for fn in ("sigmoid", "hard_sigmoid", "tanh"):
        case(fn, x(4, 2))
    for shape, axis in [((4, 10), -1), ((4, 5, 3), 1), ((4, 5, 3, 10), 2)]:
        case("softmax", x(*shape), axis=axis)
    for axis in (-1, 1):
        case("l2_normalize", x(4, 3), axis=axis)
    soft = values([[.4, .6], [.3, .7], [.1, .9], [.2, .8]])
    case("binary_crossentropy", soft, values([[.3, .7], [.2, .8], [.4, .6], [.1, .9]]))
    case("binary_crossentropy", soft, x(4, 2), from_logits=True)
    case("categorical_crossentropy", soft, values([[1, 0], [1, 0], [0, 1], [0, 1]]))
    case("categorical_crossentropy", soft, x(4, 2), from_logits=True)
    soft = values([[.4, .1, .5], [.2, .6, .2]])
    case("categorical_crossentropy", soft, values([[0, 1, 0], [1, 0, 0]]))
    case("categorical_crossentropy", soft, x(2, 3), from_logits=True)
    scores = tf.constant(rng.permutation(200).reshape(20, 10) / 256.0, "float32")
    ties = scores.numpy().copy()
    ties[:, rng.permutation(10)[:5]] = ties[:, :1]
    for k in range(1, 11):
        case("in_top_k", scores, tf.constant(rng.randint(0, 10, 20), "int32"), k=k)
        case("in_top_k", tf.constant(ties), tf.zeros(20, "int32"), k=k)
