"""Calls functions of kassette.keras with random arguments: fuzz.py SECONDS [SEED].

Each call gives a result or one of Python's exceptions, of one line; anything else ends the process, or is printed with what repeats it.
"""
import faulthandler
import inspect
import sys
import time

import numpy as np

import kassette
import kassette.keras as K

ALLOWED = (ValueError, TypeError, AssertionError, NotImplementedError, RuntimeError, MemoryError, AttributeError, IndexError, KeyError,
           OverflowError, ZeroDivisionError)
# What they change would last.
LEFT_OUT = {"set_floatx", "set_epsilon", "set_image_data_format", "set_learning_phase", "manual_variable_initialization", "control_dependencies",
            "name_scope", "clear_session", "symbolic", "eager"}
FUNCTIONS = [f for name, f in sorted(vars(K).items()) if callable(f) and not name.startswith("_") and not inspect.isclass(f) and name not in LEFT_OUT]
METHODS = [name for name in dir(kassette.Tensor) if name.startswith("__") and name not in ("__class__", "__init__", "__new__", "__init_subclass__",
           "__subclasshook__", "__setattr__", "__delattr__", "__getattribute__", "__dir__", "__reduce__", "__reduce_ex__", "__getstate__")]


class Arguments:
    """Draws arguments of any kind; half of the shapes are of one small family, so that many fit."""

    def __init__(self, seed):
        self.r = np.random.RandomState(seed)
        self.kept = [K.variable(np.ones((2, 3)))]

    def shape(self):
        if self.r.rand() < 0.5:
            return (2, 3, 4, 4, 3)[:self.r.randint(6)]
        return tuple(int(n) for n in self.r.randint(0, 4, size=self.r.randint(0, 5)))

    def tensor(self):
        r, shape = self.r, self.shape()
        kind = r.randint(4)
        if kind == 0:
            return K.placeholder(tuple(None if r.rand() < 0.3 else n for n in shape), dtype=str(r.choice(["float32", "float64", "int32", "bool"])))
        if kind == 1:
            return K.variable(r.normal(size=shape), dtype=str(r.choice(["float32", "float64", "int32", "float16"])))
        if kind == 2:
            return K.placeholder(shape) * 2.0
        return self.kept[r.randint(len(self.kept))]

    def text(self):
        return str(self.r.choice(["same", "valid", "channels_first", "channels_last", "float32", "int32", "avg", "max", "nearest", "bilinear", "x", ""]))

    def one(self, depth=0):
        r, kind = self.r, self.r.randint(20)
        if kind < 3:
            return r.normal(size=self.shape()).astype(r.choice(["float32", "float64", "float16", "int32", "int64", "bool", "uint8", "uint64", "complex64"]))
        if kind < 8:
            return self.tensor()
        if kind < 11:
            return int(r.choice([-9, -2, -1, 0, 1, 1, 2, 2, 3, 8, 2 ** 40, -2 ** 63])) if r.rand() < 0.95 else 2 ** 64
        if kind < 12:
            return [None, True, False, 0.5, -1e300, float("nan"), b"x", object(), np.float32(2), np.array(["a"]), {}, slice(0, 2), ...][r.randint(13)]
        if kind < 13:
            return self.text()
        if kind < 14:
            return self.function()
        if kind < 17 and depth < 3:
            return (list if r.rand() < 0.5 else tuple)(self.one(depth + 1) for _ in range(r.randint(0, 4)))
        return self.shape()

    def function(self):
        return [lambda *a: a[0] if a else self.kept[0], lambda x, s: (x, s), lambda x, s: (x, [x] * len(s)), lambda *a: None, lambda *a: 1 / 0,
                lambda x, *_: K.square(x)][self.r.randint(6)]


def attempt(draw):
    """One call, and what came of it used."""
    r = draw.r
    if r.rand() < 0.1:
        call = getattr(draw.tensor(), METHODS[r.randint(len(METHODS))], None)
    else:
        call = FUNCTIONS[r.randint(len(FUNCTIONS))]
    if call is None:
        return
    args = [draw.one() for _ in range(r.randint(0, 6))]
    kwargs = {}
    if r.rand() < 0.4:   # named ones fit better
        try:
            names = list(inspect.signature(call).parameters)
            kwargs = {names[i]: draw.one() for i in range(len(args), len(names)) if r.rand() < 0.3}
        except (TypeError, ValueError):
            pass
    try:
        y = call(*args, **kwargs)
        if isinstance(y, kassette.Tensor):
            draw.kept = draw.kept[-20:] + [y]
            if not y.symbolic:
                K.eval(y)
        elif callable(y) and not inspect.isclass(y):
            y([draw.one() for _ in range(r.randint(0, 3))])
    except ALLOWED as e:
        if "incompatible function arguments" in str(e) and call in FUNCTIONS:
            raise SystemExit(f"{call} with {args}, {kwargs}: more than one line: {e}")
        if "::" in str(e) or "{{" in str(e):
            raise SystemExit(f"{call} with {args}, {kwargs}: an error that speaks C++: {e}")


def main(seconds, seed=None):
    faulthandler.enable()
    seed = np.random.SeedSequence().entropy % 2 ** 32 if seed is None else int(seed)
    end, count = time.monotonic() + float(seconds), 0
    print("fuzz.py: seed", seed, flush=True)
    while time.monotonic() < end:
        draw = Arguments((seed + count) % 2 ** 32)   # a batch has a seed of its own, so that one that fails is found again in seconds
        try:
            for _ in range(500):
                attempt(draw)
        except BaseException:
            print("fuzz.py: failed in the batch with seed", seed + count, file=sys.stderr)
            raise
        count += 1
        if K.eval(K.sum(K.constant([1.0, 2.0]))) != 3:
            raise SystemExit("the library no longer works")
    print(f"fuzz.py: {count * 500} calls, no crash")


if __name__ == "__main__":
    main(*sys.argv[1:])
