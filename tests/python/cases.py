"""Expressions of Keras' backend whose values test_cases.py compares with TensorFlow's, in cases.json.

`KERAS_BACKEND=tensorflow python3.7 cases.py > cases.json` made that file, with keras 2.3.1, tensorflow 1.15.5, protobuf 3.20 and h5py 2.10. What
TensorFlow refuses is left out.
"""
import json
import warnings

import numpy as np

warnings.simplefilter("ignore")
A = np.array([[1.5, -0.25, 2.0], [0.5, -3.0, 1.0]], "float32")
B = np.arange(24, dtype="float32").reshape(2, 3, 4) / 8 - 1
I = np.array([[1, -2, 3], [4, 5, -6]])
LOGITS = np.array([[50.0, 0.0, -50.0], [1.0, 2.0, 3.0]], "float32")
TARGETS = np.array([[0.0, 0.0, 1.0], [0.2, 0.3, 0.5]], "float32")


def names(K):
    """What the expressions refer to, for a backend."""
    def c(value, dtype="float32"):
        return K.constant(value, dtype=dtype)

    def called(y):   # with p = B
        return K.function([p], y if isinstance(y, list) else [y])([B])

    def with_gradient(loss, x):
        return [loss, K.gradients(K.sum(loss), [x])[0]]

    def entropy(function, target, activation, logits=LOGITS):
        z = K.variable(logits)
        return with_gradient(function(target, activation(z)), z)

    p, W = K.placeholder((None, None, 4)), K.variable(np.arange(10.0).reshape(5, 2))
    y, y2, number = K.placeholder((None,)), K.placeholder((None,)), K.placeholder(())
    return dict(globals(), K=K, c=c, called=called, with_gradient=with_gradient, entropy=entropy, p=p, W=W, n=K.shape(p)[1], x=c(A), b=c(B), y=y, y2=y2,
                number=number, a=np.array([1.0, 2.0], "float32"), one=c(1, "int32"), half=c(0.5), variable_half=K.variable(0.5), two=K.variable(2, dtype="int32"),
                true=K.greater(c([1.0, 1.0, 0.0]), 0.5), other=K.greater(c([1.0, 0.0, 0.0]), 0.5))


DTYPES = ("int32", "int64", "uint8", "float16", "float32", "float64")
OF_ONE = """square abs sign transpose flatten batch_flatten sum max min mean prod var argmax argmin cumsum cumprod zeros_like ones_like identity shape size relu
            int_shape ndim""".split()
EXPRESSIONS = [f"K.{f}(c({'abs(I)' if dtype == 'uint8' else 'I'}, '{dtype}'))" for dtype in DTYPES for f in OF_ONE]
EXPRESSIONS += [f"K.{f}(c(I, '{dtype}'), axis=[0, 1], keepdims=True)" for dtype in DTYPES[:2] for f in ("sum", "max", "mean", "prod", "var")]
EXPRESSIONS += [f"c(I, '{dtype}') {op} {by}" for dtype in DTYPES[:2] + DTYPES[4:] for op in "+ - * / // % ** < >=".split() for by in ("2", f"c(abs(I), '{dtype}')")]
EXPRESSIONS += """
K.mean(c([1, 2], 'int32'))
K.mean(c([-1, -2], 'int32'))
K.mean(c([-7, 2, 1], 'int64'))
K.mean(c([250, 250], 'uint8'))
K.mean(c([1] * 300, 'uint8'))
K.mean(c([3] * 200, 'int8'))
K.mean(c([2 ** 31 - 1, 2 ** 31 - 1], 'int32'))
K.mean(true)
K.var(true)
K.arange(3)
K.arange(3.)
K.arange(2.5)
K.arange(0., 3, 0.5)
K.arange(0.5, 3.5)
K.arange(5, 1, -2)
K.arange(-2)
K.arange(0, 3, 0.5, dtype='int64')
K.arange(0, 3, 0.5, dtype='float64')
K.arange(c(3, 'int64'))
K.arange(c(3.))
K.arange(0, c(2.5, 'float64'))
K.arange(0, c(5, 'int64'), 2)
K.arange(0, np.int64(3))
K.arange(0, np.float64(3))
K.arange(3, dtype='float32')
K.relu(c(I, 'int32'), alpha=0.5)
K.relu(c(I, 'int64'), max_value=6)
K.relu(c(I, 'float32'), alpha=0.5, max_value=3.)
c(np.ones((2, 3))) @ c(np.arange(6).reshape(3, 2))
c(np.arange(12).reshape(2, 2, 3)) @ c(np.arange(12).reshape(2, 3, 2))
c(np.arange(12).reshape(2, 2, 3)) @ c(np.arange(12).reshape(3, 4))
c(np.arange(6).reshape(2, 3)) @ c(np.arange(12).reshape(2, 3, 2))
c(np.arange(12).reshape(2, 1, 2, 3)) @ c(np.arange(24).reshape(1, 4, 3, 2))
called(p @ K.permute_dimensions(p, (0, 2, 1)))
true ^ other
True ^ other
b[0]
b[-1]
b[0, 1]
b[..., 0]
b[:, 0]
b[None]
b[None, 0]
b[..., None]
b[1:]
b[::-1]
b[-2:, None, ::2]
b[[0, 1]]
b[[slice(None), 0]]
b[[slice(None), None, slice(0, 2)]]
b[np.int64(1)]
b[np.array(1)]
b[5:9]
b[:, 2:1]
b[0, ..., 1]
b[one]
called(W[:n])
called(W[n:])
called(W[:-n])
called(W[-n:])
called(W[n - 1:n])
called(W[:n * 9])
called(W[n * -9:])
called(W[n:n - 1])
called(W[:n:2])
called(W[n::-1])
called(W[:n:-1])
called(W[:-n:-1])
called(W[-n::-1])
called(W[n:0:-2])
called(W[one:])
called(W[:two])
called(W[two])
called(W[K.cast(n, 'int64'):])
called(W[:K.shape(W)[0] - 1])
called(W[[slice(None, n), 0]])
called(p[:, :n - 1])
called(p[:, 1:n])
called(p[:, n - 1])
called(p[:, :n - 1, ::2])
called(p[0, :n - 1])
called(p[:, None, :n - 2])
called(p[:, n - 2:, None, 1])
called(p[..., n - 2:, 1])
called(p[..., :n])
called(p[:, :K.shape(p)[1] // 2])
called(K.gradients(K.sum(K.square(W[:n])), [W])[0])
called(K.gradients(K.sum(K.square(p[:, n - 2::2])), [p])[0])
K.function(y, 2 * y)(a)
K.function(y, [2 * y])([a])
K.function([y], 2 * y)(a)
K.function([y], 2 * y)([a])
K.function([y, y2], [y + y2])([[a], [a]])
K.function([y, y2], [y + y2])((a, a))
K.function([y, y2], [y + y2])([a, a, a])
K.function([y, [y2]], [y + y2])([a, [a]])
K.function([y, [y2]], [y + y2])([a, a])
K.function([y], {'d': 2 * y})([a])
K.function({'y': y}, [2 * y])({'y': a})
K.function({'y': y}, [2 * y])([a])
K.function({'b': y, 'a': y2}, [y - y2])({'a': a, 'b': 2 * a})
K.function([y, y2], [y - y2])({'a': a, 'b': 2 * a})
K.function([y], (2 * y, y))([a])
K.function([y], [2 * y, [y]])([a])
K.function([y], {'d': [2 * y], 'e': (y,)})([a])
K.function([y], [2 * y])([a, 0])
K.function([number], [number])([3])
K.function(number, 2 * number)(3)
K.map_fn(lambda v: (v, v * 2), c([1., 2.]), dtype=('float32', 'float32'))
K.map_fn(lambda v: [v, K.cast(v, 'int32')], c([1., 2.]), dtype=['float32', 'int32'])
K.map_fn(lambda v: v[0] + v[1], (c([1., 2.]), c([3., 4.])), dtype='float32')
K.map_fn(lambda v: (v[0], v[1] * 2), [c([1., 2.]), c([3., 4.])])
called(K.map_fn(lambda v: (K.sum(v), v[0]), p, dtype=('float32', 'float32')))
with_gradient(K.map_fn(lambda v: (K.square(v), v * 3.), W, dtype=('float32', 'float32'))[0], W)
K.repeat(x, one)
called(K.repeat(x, n))
K.one_hot(c([0, 2], 'int32'), two)
called(K.one_hot(c([0, 2], 'int32'), n))
K.in_top_k(x, c([0, 1], 'int32'), one)
K.in_top_k(x, c([2, 1], 'int32'), two)
K.in_top_k(c([[1., np.nan], [1., np.inf], [2., 1.]]), c([0, 0, 0], 'int32'), one)
K.sum(x, axis=one)
K.mean(x, axis=one)
K.concatenate([x, x], axis=one)
K.expand_dims(x, one)
K.cumsum(x, axis=one)
K.argmax(x, axis=one)
K.l2_normalize(x, axis=one)
K.tile(x, [one, 2])
K.elu(x, alpha=half)
K.elu(x, alpha=variable_half)
K.relu(x, alpha=variable_half)
K.relu(x, max_value=variable_half)
K.relu(x, threshold=variable_half)
K.relu(x, alpha=half, max_value=half * 2, threshold=half / 2)
with_gradient(K.elu(x, alpha=variable_half), variable_half)
K.dropout(x, c(0.))
K.batch_normalization(x, K.mean(x, 0), K.var(x, 0), None, None, epsilon=half)
K.normalize_batch_in_training(x, c([1., 2, 3]), c([0., 1, 2]), [0], epsilon=half)
K.normalize_batch_in_training(b, None, None, [0, 2], epsilon=variable_half)
x.get_shape().as_list()
x.shape.as_list()
x.shape.ndims
x.shape[1:].as_list()
x.shape.num_elements()
p.shape.as_list()
p.shape.is_fully_defined()
entropy(K.categorical_crossentropy, c(TARGETS), K.softmax)
entropy(K.categorical_crossentropy, c(TARGETS), lambda z: K.softmax(z, axis=1))
entropy(K.categorical_crossentropy, c(TARGETS), lambda z: K.identity(K.softmax(z)))
entropy(K.categorical_crossentropy, c(TARGETS), K.sigmoid)
entropy(K.categorical_crossentropy, c(TARGETS[None]), K.softmax, LOGITS[None])
entropy(K.sparse_categorical_crossentropy, c([2, 0], 'int32'), K.softmax)
entropy(K.sparse_categorical_crossentropy, c([[2], [0]], 'int32'), K.softmax)
entropy(K.sparse_categorical_crossentropy, c([[2, 0]], 'int32'), K.softmax, LOGITS[None])
entropy(K.sparse_categorical_crossentropy, c([2, 0], 'int32'), K.sigmoid)
entropy(K.binary_crossentropy, c(TARGETS), K.sigmoid)
entropy(K.binary_crossentropy, c(TARGETS), lambda z: K.cast(K.sigmoid(z), 'float32'))
K.binary_crossentropy(c(TARGETS), K.sigmoid(c(LOGITS)), from_logits=True)
""".strip().splitlines()


def plain(value, K):
    """A value as JSON has it: of a tensor or an array its dtype, shape and elements."""
    if isinstance(value, dict):
        return {key: plain(value[key], K) for key in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [plain(part, K) for part in value]
    if K.is_tensor(value):
        value = np.asarray(K.eval(value)).astype(K.dtype(value))
    if isinstance(value, (np.ndarray, np.generic)):
        return {"dtype": str(value.dtype), "shape": list(value.shape), "elements": np.asarray(value).ravel().tolist()}
    return value


def main():
    from keras import backend as K
    found, known = {}, names(K)
    for expression in EXPRESSIONS:
        try:
            found[expression] = plain(eval(expression, known), K)
        except Exception:   # of any kind: TensorFlow has no such op
            pass
    print("{\n" + ",\n".join(json.dumps(key) + ": " + json.dumps(found[key]) for key in found) + "\n}")


if __name__ == "__main__":
    main()
