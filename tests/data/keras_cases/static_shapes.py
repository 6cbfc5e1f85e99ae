"""tests/data/keras_cases/static_shapes.py - what is known before a value is there."""
from ask import *


def static_shapes():
    f, i, n = "float32", "int32", None
    for fn in "square exp round sigmoid softplus softmax cumsum".split():
        for shape in [(n, 3), (n,), (2, n, n), n]:
            if not (shape is n and fn == "softmax"):
                static(fn, (f, shape))
    for fn in ("maximum", "less", "pow"):
        for a, b in [((n, 3), (3,)), ((n, 3), (2, 1)), ((n, 3), (n, 3)), ((n, 3), (1, 3)), ((n, n), (n,)), ((2, 1), (1, n)), (n, (2, 3)), ((n, 3), n), ((n,), ())]:
            static(fn, (f, a), (f, b))
    for fn in ("sum", "mean", "max", "any", "logsumexp"):
        for shape, axis, keepdims in [((n, 3), 0, False), ((n, 3), 1, False), ((n, 3), 1, True), ((2, n, 4), [0, -1], False), ((2, n, 4), [0, -1], True),
                                      ((n, n), None, False), ((n, n), None, True), (n, None, False)]:
            static(fn, ("bool" if fn == "any" else f, shape), axis=axis, keepdims=keepdims)
    static("argmax", (f, (n, 3)))
    static("argmin", (f, (n, 3)), axis=0)
    for a, b in [((n, 3), (3, 4)), ((2, n), (n, 4)), ((n, 3), (n, 4)), ((n, n), (n, n)), ((n, 2, 3), (3, 4)), ((2, 7, 3), (4, 6, 3, 5)), ((n, 7, 3), (n, 6, 3, 5)),
                 ((2, n, 3), (4, n, 5))]:
        static("dot", (f, a), (f, b))
    for a, b, axes in [((n, 3, 4, 5), (n, 2, 3, 4), (2, 3)), ((n, 3, 4, 5), (n, 2, 4), 2), ((n, 3, 4), (n, 2, 3, 4), (2, 3)), ((n, 4, 3), (n, 3, 5), (2, 1)),
                       ((n, 4), (n, 3, 4), (1, 2)), ((n, 4), (n, 4), None), ((7, 4), (n, 4), None), ((n, 4, 3), (7, 3, 5), None), ((n, n, 3), (n, 3, n), None)]:
        static("batch_dot", (f, a), (f, b), axes=axes)
    for shape in [(n, 3), (2, n, 4), n]:
        static("transpose", (f, shape))
        static("flatten", (f, shape))
    for a, b in [((n, 3), (n,)), ((5, n), (2, 3)), ((n,), ()), ((4, 3), n)]:
        static("gather", (f, a), (i, b))
    for shapes, axis in [([(n, 3), (n, 4)], -1), ([(n, 3), (2, 4)], 1), ([(n, 3), (2, 3)], 0), ([(n, n), (2, 3)], 1), ([(2, n), (n, 3)], 0)]:
        static("concatenate", *[(f, s) for s in shapes], axis=axis)
    for shapes, axis in [([(n, 3), (2, n)], 0), ([(n, 3), (n, 3)], -1), ([(n,), (2,)], 1)]:
        static("stack", *[(f, s) for s in shapes], axis=axis)
    for shape, to in [((n, 3), (-1, 3, 1)), ((n, 3), (2, 3)), ((2, 3), (-1,)), ((n, n), (-1,)), (n, (2, 3))]:
        static("reshape", (f, shape), shape=to)
    static("permute_dimensions", (f, (n, 3, 4)), pattern=(2, 0, 1))
    for shape in [(n, 3, 4), (n, n, 4), (3, n, 4), (2, 3)]:
        static("batch_flatten", (f, shape), note="batch_flatten_of_an_image" if shape in ((n, 3, 4), (3, n, 4)) else None)
    for shape, rep, axis in [((n, 3), 3, 1), ((n, 3), 3, 0), ((2, n, 4), 2, 1)]:
        static("repeat_elements", (f, shape), rep=rep, axis=axis)
    static("repeat", (f, (n, 3)), n=4)
    static("repeat", (f, (2, n)), n=4)
    static("tile", (f, (n, 4)), n=2)
    static("tile", (f, (n, 4)), n=(4, 3))
    static("expand_dims", (f, (n, 3)), axis=1)
    static("expand_dims", (f, (n, 3)))
    static("squeeze", (f, (n, 1, 3)), axis=1)
    static("squeeze", (f, (n, n, 3)), axis=1)
    static("reverse", (f, (n, 3)), axes=1)
    static("slice", (f, (n, 5)), start=(0, 1), size=(2, 3))
    static("one_hot", (i, (n,)), num_classes=4)
    static("one_hot", (i, (n, 3)), num_classes=4)
    for logits in (False, True):
        static("categorical_crossentropy", (f, (n, 3)), (f, (n, 3)), from_logits=logits)
        static("categorical_crossentropy", (f, (n, 5, 3)), (f, (n, 5, 3)), from_logits=logits)
        static("binary_crossentropy", (f, (n, 3)), (f, (n, 3)), from_logits=logits)
    static("sparse_categorical_crossentropy", (i, (n,)), (f, (n, 3)))
    static("sparse_categorical_crossentropy", (i, (n, 5)), (f, (n, 5, 3)))
    static("in_top_k", (f, (n, 5)), (i, (n,)), k=2)
    static("l2_normalize", (f, (n, 3)), axis=1)
    static("clip", (f, (n, 3)), min_value=0, max_value=1)
    static("relu", (f, (n, 3)), alpha=0.1, max_value=3.0, threshold=0.5)
