"""tests/data/keras_cases/at_random.py - functions, ranks, sizes, axes and dtypes by chance."""
from ask import *
from reductions import REDUCTIONS


def at_random():
    for _ in range(60):
        a, b = shape_of_rank(2, 3), shape_of_rank(2, 3)
        b = b[:-2] + (a[-1], b[-1])
        case("dot", *[random(s, dtype) for dtype in [pick(FLOATS[:2])] for s in (a, b)])
    for _ in range(90):
        a, b, batch = shape_of_rank(1, 3), shape_of_rank(1, 3), int(rng.randint(1, 4))
        i, j = rng.randint(len(a)), rng.randint(len(b))
        b = b[:j] + (a[i],) + b[j + 1:]
        axes = (i + 1 - (len(a) + 1) * rng.randint(2), j + 1 - (len(b) + 1) * rng.randint(2))
        case("batch_dot", *[random((batch,) + s, dtype) for dtype in [pick(FLOATS[:2])] for s in (a, b)], axes=tuple(map(int, axes)))
    for _ in range(40):
        ref = shape_of_rank(1, 3)
        case("gather", random(ref, pick(FLOATS[:2])), tf.constant(rng.randint(0, ref[0], shape_of_rank(0, 2)), "int32"))
    for _ in range(120):
        x = shape_of_rank(1, 4)
        axes = [int(i - len(x) * rng.randint(2)) for i in rng.permutation(len(x))[:rng.randint(1, len(x) + 1)]]
        fn = pick(REDUCTIONS[:5] + ["var", "logsumexp", "any", "all"])
        case(fn, random(x, pick(FLOATS[:2])), axis=axes, keepdims=bool(rng.randint(2)))
    for _ in range(60):
        x = shape_of_rank(1, 4)
        axis = int(rng.randint(-len(x), len(x)))
        fn = pick(["cumsum", "cumprod", "argmax", "argmin", "softmax", "l2_normalize"])
        case(fn, random(x, pick(FLOATS[:2]), 0.125), axis=axis)
    for _ in range(80):
        x, y = list(shape_of_rank(4, 4)), list(shape_of_rank(4, 4))
        for i in range(4):   # one of two, or both
            if x[i] != y[i]:
                pick([x, y])[i] = 1
            if 1 not in (x[i], y[i]):
                y[i] = x[i]
        x, y = tuple(x[rng.randint(4):]), tuple(y[rng.randint(4):])
        fn, dtype = pick(["maximum", "minimum", "pow", "less", "equal", "greater_equal"]), pick(FLOATS[:2])
        case(fn, random(x, dtype, 0.125), random(y, dtype))
    for _ in range(100):
        fn, dtype = pick(["square", "abs", "sqrt", "exp", "log", "sin", "cos", "softplus", "softsign", "sigmoid", "hard_sigmoid", "tanh"]), pick(FLOATS[:2])
        case(fn, tf.cast(tf.constant(np.round(rng.standard_normal(shape_of_rank(1, 2)) * pick([0.1, 1, 3, 10]), 3)), dtype))
    for _ in range(40):
        args = {"alpha": pick([0.0, 0.25, -0.5]), "max_value": pick([None, 1.0, 2.5]), "threshold": pick([0.0, 0.5625, -0.4375])}
        case("relu", random(shape_of_rank(1, 2)), **args)
    for _ in range(100):
        x = shape_of_rank(2, 4)
        n, t = len(x), random(x, pick(["float32", "int32", "float64"]))
        axis = int(rng.randint(-n, n))
        starts = [int(rng.randint(d)) for d in x]
        by = [("permute_dimensions", {"pattern": tuple(map(int, rng.permutation(n)))}), ("repeat_elements", {"rep": int(rng.randint(1, 4)), "axis": axis}),
              ("tile", {"n": tuple(int(k) for k in rng.randint(1, 3, n))}), ("expand_dims", {"axis": axis}), ("reverse", {"axes": axis}),
              ("slice", {"start": starts, "size": [int(rng.randint(0, d - s + 1)) for d, s in zip(x, starts)]}),
              ("reshape", {"shape": tuple(int(d) for d in rng.permutation(x))}), ("transpose", {}), ("stack", {"axis": axis})]
        fn, args = by[rng.randint(len(by))]
        if fn == "repeat_elements" and axis < 0:
            args["axis"] += n
        case(fn, t, **args)
    for _ in range(40):
        x = shape_of_rank(1, 4)
        axis = int(rng.randint(len(x)))
        dtype = pick(["float32", "bool", "float64"])
        case("concatenate", *[random(x[:axis] + (int(rng.randint(0, 4)),) + x[axis + 1:], dtype) for _ in range(rng.randint(1, 4))], axis=axis)
    for _ in range(60):
        x, dtype = shape_of_rank(2, 3, SIZES[1:]), pick(FLOATS[:2])
        axis = int(rng.randint(len(x)))
        ids = rng.randint(0, x[axis], x[:axis] + x[axis + 1:])
        one = tf.constant(np.moveaxis(np.eye(x[axis])[ids], -1, axis), dtype)
        p = tf.constant(rng.randint(1, 9, x) / 8.0, dtype)
        z = random(x, dtype, -6, 6)
        logits = bool(rng.randint(2))
        case("categorical_crossentropy", one, z if logits else p, from_logits=logits, axis=axis)
        case("sparse_categorical_crossentropy", tf.constant(ids, "int32"), z if logits else p, from_logits=logits, axis=axis)
        case("binary_crossentropy", p, z if logits else tf.clip_by_value(p, 0.125, 0.875), from_logits=logits)
        case("in_top_k", random((3, 4), low=-0.5, high=0.5), tf.constant(rng.randint(0, 4, 3), "int32"), k=int(rng.randint(1, 5)))
