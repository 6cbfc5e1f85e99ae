"""What every rank of tests/python/test_distributed.py runs: ranks.py FOLDER. Expected values are NumPy's, of what each rank holds."""
import hashlib
import os
import sys

import numpy as np

import kassette.keras as K
from kassette import distributed as D

WORLD = D.init()
RANK, SIZE = WORLD.rank, WORLD.size
REDUCE = {D.sum: np.add.reduce, D.mean: lambda xs: np.mean(xs, axis=0), D.max: np.maximum.reduce, D.min: np.minimum.reduce, D.prod: np.multiply.reduce}


def of_rank(r, shape=(2, 3), dtype="float32"):
    """What rank r holds: small whole numbers, exact in every dtype."""
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) * 3 + 5 * r + 2).astype("int64").__mod__(7).astype(dtype)


def of_all(shape=(2, 3), dtype="float32"):
    return [of_rank(r, shape, dtype) for r in range(SIZE)]


def equal(got, want):
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape and (got == want).all(), (got, want)


def message_of(call, kind):
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__}")


# ---- collectives -------------------------------------------------------------------------------------------------------------------

def world():
    assert D.World() == WORLD and 0 <= RANK < SIZE and WORLD.local_rank == RANK and repr(WORLD).startswith("World(rank " + str(RANK))
    parity = WORLD.split(RANK % 2, -RANK)   # in the opposite order
    members = [r for r in range(SIZE) if r % 2 == RANK % 2][::-1]
    assert (parity.rank, parity.size) == (members.index(RANK), len(members)) and parity != WORLD
    equal(D.all_reduce(np.int32(RANK), world=parity), np.int32(sum(members)))
    equal(D.all_gather(of_rank(RANK), parity), np.concatenate([of_rank(r) for r in members]))
    WORLD.barrier()
    assert "-1" in message_of(lambda: WORLD.split(-1), ValueError)


def all_reduce():
    for dtype in ("float16", "float32", "float64", "uint8", "int32", "int64"):
        for how, reduce in REDUCE.items():
            if how == D.mean and not dtype.startswith("float"):
                assert "mean" in message_of(lambda: D.all_reduce(of_rank(RANK, dtype=dtype), how), TypeError)
                continue
            want = reduce(of_all(dtype="float64")).astype(dtype)
            got = D.all_reduce(of_rank(RANK, dtype=dtype), how)
            if how == D.mean:
                np.testing.assert_allclose(got, want, rtol=1e-3 if dtype == "float16" else 1e-6)
            else:
                equal(got, want)
            equal(K.eval(D.all_reduce(K.variable(of_rank(RANK, dtype=dtype), dtype), how)), got)
    total = SIZE * (SIZE - 1) // 2
    got = D.all_reduce([RANK, 0.5 * RANK, np.full((0, 2), RANK, "float32"), of_rank(RANK)])
    assert isinstance(got, list)
    for x, want in zip(got, (np.int64(total), np.float64(0.5 * total), np.zeros((0, 2), "float32"), np.add.reduce(of_all()))):
        equal(x, want)
    x, y = K.placeholder((None, 3)), K.placeholder((2,))
    f = K.function([x, y], D.all_reduce([K.square(x), y], D.max))
    for got, want in zip(f([of_rank(RANK), of_rank(RANK, (2,))]), (np.square(REDUCE[D.max](of_all())), REDUCE[D.max](of_all((2,))))):
        equal(got, want)


def broadcast():
    for root in (0, SIZE - 1):
        equal(D.broadcast(of_rank(RANK), root), of_rank(root))
        equal(K.eval(D.broadcast(K.constant(of_rank(RANK)), root)), of_rank(root))
        v, w = K.variable(of_rank(RANK)), K.variable(RANK, "int64")
        assert D.broadcast(v, root) is v and D.broadcast([v, w], root) == [v, w]
        equal(K.get_value(v), of_rank(root))
        equal(K.get_value(w), np.int64(root))
    assert "variables" in message_of(lambda: D.broadcast([K.variable(1.0), np.ones(2)]), ValueError)


def rows():
    mine = [np.full((r + 1, 2), r, "float32") for r in range(SIZE)]
    equal(D.all_gather(mine[RANK]), np.concatenate(mine))
    equal(D.all_gather(RANK), np.arange(SIZE))
    equal(K.eval(D.all_gather(K.constant(mine[RANK]))), np.concatenate(mine))
    n = 2 * SIZE + 1
    parts = np.array_split(np.arange(n), SIZE)   # the first ones one more, as shard has it
    for how, reduce in REDUCE.items():
        np.testing.assert_allclose(D.reduce_scatter(of_rank(RANK, (n, 2)), how), reduce(of_all((n, 2)))[parts[RANK]], rtol=1e-6)
    shape = (2 * SIZE, 3)
    want = np.concatenate([np.split(x, SIZE)[RANK] for x in of_all(shape)])
    equal(D.all_to_all(of_rank(RANK, shape)), want)
    equal(K.eval(D.all_to_all(K.constant(of_rank(RANK, shape)))), want)
    whole = of_rank(7, (n, 2))
    for got in (D.shard(whole), K.eval(D.shard(K.constant(whole))), np.array(D.shard(whole.tolist()), "float32")):
        equal(got, whole[parts[RANK]])
    assert "scalar" in message_of(lambda: D.shard(np.float32(1)), ValueError)
    assert "int" in message_of(lambda: D.shard(3), TypeError)


def messages():
    if SIZE == 1:
        assert "itself" in message_of(lambda: D.send(1.0, 0), ValueError)
        return
    after, before = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    assert D.send(of_rank(RANK), after) is None
    equal(D.recv(np.zeros((2, 3), "float32"), before), of_rank(before))
    # A pipeline of two, and back: y = x**2 goes on to rank 1, whose loss is sum(3 * y).
    x = K.variable(of_rank(0))
    if RANK == 0:
        sent = D.send(K.square(x), 1)
        token, gradient = K.function([], [sent, K.gradients(sent, [x])[0]])([])
        equal(gradient, 6 * of_rank(0))
    elif RANK == 1:
        got = D.recv(x, 0)
        value, gradient = K.function([], [got, K.gradients(K.sum(3 * got), [x])[0]])([])
        equal(value, np.square(of_rank(0)))
        equal(gradient, np.zeros((2, 3), "float32"))


def gradients():
    v, w, unused = K.variable(np.linspace(-1, 1, 6).reshape(2, 3)), K.variable(np.ones((3, 4))), K.variable(1.0)
    x = K.placeholder((None, 2))
    loss = K.sum(K.square(K.dot(K.dot(x, v), w)))
    for bucket_bytes in (1, 1 << 20):
        for how in (D.sum, D.mean):
            got = D.gradients(loss, [v, w, unused], how, bucket_bytes)
            assert got[2] is None
            got = K.function([x], got[:2])([of_rank(RANK, (4, 2))])
            a, b = K.get_value(v).astype("float64"), K.get_value(w).astype("float64")
            of_v = [2 * r.T @ (r @ a @ b) @ b.T for r in of_all((4, 2), "float64")]
            of_w = [2 * (r @ a).T @ (r @ a @ b) for r in of_all((4, 2), "float64")]
            np.testing.assert_allclose(got[0], REDUCE[how](of_v), rtol=2e-5, atol=1e-4)
            np.testing.assert_allclose(got[1], REDUCE[how](of_w), rtol=2e-5, atol=1e-4)
    # The loss is the sum of all ranks': of sum(c * all_reduce(v)), with c of each rank, it is the sum of the c.
    c = of_rank(RANK)
    equal(K.eval(K.gradients(K.sum(c * D.all_reduce(v)), [v])[0]), np.add.reduce(of_all()))
    assert "mean" in message_of(lambda: D.gradients(loss, [v], D.max), ValueError)


def mismatch():
    if SIZE == 1:
        return
    said = message_of(lambda: D.all_reduce(np.ones(2 if RANK else 3)), RuntimeError)
    assert "rank 0 has all_reduce(sum) of float64 (3,), rank 1 has all_reduce(sum) of float64 (2,)" in said, said
    equal(D.all_reduce(np.int64(1)), np.int64(SIZE))   # the world can be used further


def arguments():
    for call, kind, said in (
            (lambda: D.all_reduce(1.0, "average"), ValueError, "all_reduce: how is 'average'; it must be sum, mean, max, min or prod"),
            (lambda: D.all_reduce(1.0, 3), TypeError, "all_reduce: how: text is expected, not int"),
            (lambda: D.all_reduce("a"), TypeError, "all_reduce: an array of dtype <U1: tensors do not support it"),
            (lambda: D.broadcast(1.0, None), TypeError, "broadcast: root: a value is expected, not None"),
            (lambda: D.gradients([], []), ValueError, "gradients: loss is an empty list"),
            (lambda: D.save("x", [1]), TypeError, "save: tensors: list; it must be a dict of names and tensors")):
        assert message_of(call, kind) == said, message_of(call, kind)


def files():
    path = os.path.join(FOLDER, f"step-{SIZE}.safetensors")
    shard = np.full((RANK + 1, 2), RANK, "float32")
    D.save(path, {"bias": np.arange(3) + 10 * RANK, "w": K.variable([1.0, 2.0])}, {"rows": shard})
    got = D.load(path)
    assert sorted(got) == ["bias", "rows", "w"]
    equal(got["bias"], np.arange(3))
    equal(got["w"], np.array([1, 2], "float32"))
    equal(got["rows"], shard)
    assert "no such file" in message_of(lambda: D.load(os.path.join(FOLDER, "none")), (OSError, ValueError, RuntimeError)).lower()


# ---- Keras: the same global batches whatever the number of ranks ----------------------------------------------------------------------

BATCH, STEPS, EPOCHS = 12, 5, 3


def digest(arrays):
    return np.frombuffer(hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).digest(), "int64")


def same_on_all(arrays):
    mine = digest(arrays)
    equal(D.all_reduce(mine, D.max), D.all_reduce(mine, D.min))


def data():
    random = np.random.RandomState(3)
    x, y = random.normal(size=(STEPS * BATCH, 6)), random.randint(0, 3, STEPS * BATCH)
    # Of each global batch this rank's rows, in order.
    mine = [np.concatenate([D.shard(batch) for batch in np.split(a, STEPS)]) for a in (x, y)]
    assert len(mine[0]) * SIZE == len(x)
    return mine


def train(folder):
    import keras
    from kassette import keras_distributed as KD

    def model(optimizer):
        np.random.seed(10 + RANK)   # other weights on each rank, until they take those of rank 0
        m = keras.Sequential([keras.layers.Dense(8, activation="tanh", input_shape=(6,)),
                              keras.layers.Dense(3, activation="softmax", kernel_regularizer="l2")])
        m.compile(KD.DistributedOptimizer(optimizer), "sparse_categorical_crossentropy", metrics=["accuracy"])
        return m

    x, y = data()
    results = {}
    for name, optimizer in (("momentum", keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True)), ("clipped", keras.optimizers.Adam(0.01, clipnorm=0.05)),
                            ("by name", "rmsprop")):
        m = model(optimizer)
        plateau = keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=0, min_delta=0.05)
        history = m.fit(x, y, BATCH // SIZE, EPOCHS, verbose=0, shuffle=False, callbacks=[KD.BroadcastWeights(), KD.AverageMetrics(), plateau]).history
        assert isinstance(m.optimizer, type(keras.optimizers.get(optimizer))) and len(m.optimizer.get_weights()) > 2
        same_on_all(m.get_weights() + m.optimizer.get_weights())
        logs = np.array([history[k] for k in ("loss", "accuracy", "lr")])
        same_on_all([logs])
        assert logs[2, -1] <= logs[2, 0]
        for i, w in enumerate(m.get_weights() + [logs]):
            results[f"{name} {i}"] = w
        if RANK == 0:
            m.save(os.path.join(folder, "model.h5"))
        WORLD.barrier()
        # Goes on, with the state of the optimizer.
        loaded = KD.load_model(os.path.join(folder, "model.h5"))
        assert isinstance(loaded.optimizer, KD._Averages)
        for a, b in zip(m.optimizer.get_weights() + [K.get_value(m.optimizer.lr)], loaded.optimizer.get_weights() + [K.get_value(loaded.optimizer.lr)]):
            equal(a, b)
        for each in (m, loaded):
            each.fit(x, y, BATCH // SIZE, 1, verbose=0, shuffle=False)
            same_on_all(each.get_weights())
        for a, b in zip(m.get_weights(), loaded.get_weights()):
            equal(a, b)
        assert not isinstance(keras.models.load_model(os.path.join(folder, "model.h5")).optimizer, KD._Averages)   # by a program of one rank
        WORLD.barrier()   # until all have read it
    optimizer = KD.DistributedOptimizer(keras.optimizers.SGD(0.1))
    assert KD.DistributedOptimizer(optimizer).__class__ is optimizer.__class__ and optimizer.get_config() == keras.optimizers.SGD(0.1).get_config()
    if RANK == 0:
        np.savez(os.path.join(folder, "trained.npz"), **results)


if __name__ == "__main__":
    FOLDER = sys.argv[1]
    for check in (world, all_reduce, broadcast, rows, messages, gradients, mismatch, arguments, files):
        check()
    train(FOLDER)
    if RANK == 0:
        print(f"{SIZE} ranks agree")
