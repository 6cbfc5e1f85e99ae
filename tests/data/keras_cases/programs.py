#!/usr/bin/env python3
"""tests/data/keras_cases/programs.py - writes program_cases.txt: programs made by chance, with loops, maps and branches in one
another, and what TensorFlow makes of them: values, first and second gradients.

    python3 tests/data/keras_cases/programs.py FIRST LAST [SEED ...] > tests/data/program_cases.txt      (the file: 0 150 13264; others, to try)

A line is a case as make.py says, of the function "program": body is that of the program, body0, body1, ... those of its loops and
branches, which name them @0, @1. A body is text as in loops.py; it begins with the elements, the states and what is captured. The
result is the tensors `outputs`, flat, one after the other. After | stand the gradients of all inputs, then those of the sum of these
gradients, element i of each weighted with 1 + 0.25 (i mod 5).
"""
import sys

from ask import *

F = "float64"
SHAPES = [(), (1,), (3,), (2, 3), (3, 3), (2, 3, 2), (2, 1, 3), (3, 2, 2), (1, 3), (0, 2), (0,), (1, 1, 1), (5, 2), (2, 4, 3), (2, 0, 3), (0, 2, 3),
          (7, 2), (2, 1, 3, 2)]


class Known:
    """Shape and dtype of a tensor."""
    def __init__(self, shape, dtype=F):
        self.shape, self.dtype = tuple(int(n) for n in shape), dtype


class Body:
    def __init__(self, bodies, given):
        self.bodies, self.v, self.steps = bodies, list(given), []

    def add(self, name, makes, *operands, **args):
        self.steps.append((name, [int(i) for i in operands], args))
        first = len(self.v)
        self.v.extend(makes if isinstance(makes, list) else [makes])
        return first

    def floats(self):
        return [i for i, t in enumerate(self.v) if t.dtype == F]

    def __repr__(self):
        def argument(a):
            return a if isinstance(a, str) else argument_text(a)
        return ";".join("%s(%s)" % (name, "|".join([",".join(map(str, operands))] + ["%s=%s" % (k, argument(a)) for k, a in args.items()]))
                        for name, operands, args in self.steps)

    def name(self):
        """What a step calls it by."""
        self.bodies.append(self)
        return "@%d" % (len(self.bodies) - 1)


def chance(p):
    return rng.rand() < p


def of_shape(b, shape):
    """A float tensor of that shape, made where there is none."""
    found = [i for i in b.floats() if b.v[i].shape == tuple(shape)]
    if found and chance(.95):
        return found[-1] if chance(.6) else pick(found)
    i = pick(b.floats())
    if b.v[i].shape:
        i = b.add("sum", Known(()), i, axis=None)
    return b.add("fill", Known(shape), i, shape=list(shape))


def next_state(b, state):
    """What becomes a state: of its shape and dtype, and as a rule bounded."""
    if state.dtype == "int32":
        return b.add("inc", state, pick([i for i, t in enumerate(b.v) if t.dtype == "int32" and t.shape == state.shape]))
    i = of_shape(b, state.shape)
    return i if chance(.15) else b.add("tanh", state, i)


def inner(b, given, depth):
    body = Body(b.bodies, given)
    grow(body, rng.randint(1, 6), depth + 1)
    return body


def captures(b, low, high):
    return [int(i) for i in rng.permutation(len(b.v))[:rng.randint(low, high)]]


# ---- control flow -----------------------------------------------------------------------------------------------------
def fold(b, depth):
    xs = [i for i in b.floats() if b.v[i].shape and 0 not in b.v[i].shape[1:]]
    if not xs:
        return
    x = pick(xs)
    row = b.v[x].shape[1:]
    alone = chance(.25) and b.v[x].shape[0] > 0
    start = [] if alone else [pick(b.floats()) if chance(.7) else of_shape(b, row)]
    state = Known(row) if alone else b.v[start[0]]
    captured = captures(b, 0, 3)
    body = inner(b, [Known(row), state] + [b.v[i] for i in captured], depth)
    output = next_state(body, state)
    b.add("fold", state, x, *start, *captured, body=body.name(), output=output, right=chance(.4), alone=alone)


def map_of(b, depth):
    xs = [i for i, t in enumerate(b.v) if t.shape and 0 not in t.shape[1:]]
    if not xs:
        return
    x = [pick(xs)]
    n = b.v[x[0]].shape[0]
    x += [pick([i for i in xs if b.v[i].shape[0] == n]) for _ in range(rng.randint(0, 3))]
    captured = captures(b, 0, 3)
    body = inner(b, [Known(b.v[i].shape[1:], b.v[i].dtype) for i in x] + [b.v[i] for i in captured], depth)
    output = len(body.v) - 1 if chance(.8) else rng.randint(len(body.v))
    y = body.v[output]
    b.add("map", Known((n,) + y.shape, y.dtype), *x, *captured, nx=len(x), body=body.name(), output=int(output), dtype=y.dtype)


def rnn(b, depth):
    xs = [i for i in b.floats() if len(b.v[i].shape) >= 3 and 0 not in b.v[i].shape[2:]]
    if not xs:
        return
    x = [pick(xs)]
    shape, major = b.v[x[0]].shape, chance(.3)
    n, t = shape[:2][::-1] if major else shape[:2]
    if chance(.25):
        x.append(pick([i for i in xs if b.v[i].shape[:2] == shape[:2]]))
    mask = pick(["none", "none", "of_rank_2", "of_rank_3", "lengths"])
    states = []
    for _ in range(rng.randint(mask != "none", 4)):
        s = pick([Known((n,) + shape[2:])] * 3 + [Known((n,)), Known((n, 2, 2)), Known((n, 2), "int32")] + [Known((2,)), Known((), "int32")] * (mask == "none"))
        states.append(b.add("fill_int", s, value=int(rng.randint(5)), shape=list(s.shape)) if s.dtype == "int32" else of_shape(b, s.shape))
    captured = captures(b, 0, 3)
    body = inner(b, [Known((n,) + b.v[i].shape[2:]) for i in x] + [b.v[i] for i in states + captured], depth)
    new = [next_state(body, b.v[i]) for i in states]
    rows = [i for i in body.floats() if body.v[i].shape[:1] == (n,)]
    output = new[0] if new and new[0] in rows and chance(.5) else pick(rows)
    row = body.v[output].shape
    last = []
    if mask == "lengths":
        last = [b.add("ints", Known((n,), "int32"), values=[int(k) for k in rng.randint(0, t + 2, n)])]
    elif mask != "none":
        of = ((t, n) if major else (n, t)) + ((1,) if mask == "of_rank_3" else ())
        dtype = pick(["bool", "int32", F])
        last = [b.add("bits", Known(of, dtype), values=[int(k) for k in rng.randint(0, 2, n * t) * chance(.9)], shape=list(of), dtype=dtype)]
    made = [Known(row), Known((t, n) + row[1:] if major else (n, t) + row[1:])] + [b.v[i] for i in states]
    b.add("rnn", made, *x, *states, *captured, *last, nx=len(x), constants=int(rng.randint(0, len(captured) + 1)), body=body.name(), new=new,
          output=int(output), mask=mask, backwards=chance(.4), zeros=mask != "none" and chance(.5), major=major, unroll=chance(.15) and t > 0)


def scalar_condition(b):
    found = [i for i, t in enumerate(b.v) if not t.shape and t.dtype == "bool"]
    if found:
        return pick(found)
    i = pick(b.floats())
    if b.v[i].shape:
        i = b.add("sum", Known(()), i, axis=None)
    return b.add("positive", Known((), "bool"), i)


def switch(b, depth):
    condition = scalar_condition(b)
    captured = captures(b, 1, 4) + [pick(b.floats())]
    given = [b.v[i] for i in captured]
    yes, no = inner(b, given, depth), inner(b, given, depth)
    i = pick(yes.floats())
    j = of_shape(no, yes.v[i].shape)
    b.add("switch", yes.v[i], condition, *captured, yes=yes.name(), no=no.name(), outputs=[int(i), int(j)])


def choice(b, depth):
    i = pick(b.floats())
    j = pick([k for k in b.floats() if b.v[k].shape == b.v[i].shape])
    if chance(.3):
        b.add("phase", b.v[i], i, j, training=chance(.5), test=chance(.5), lazy=chance(.5))
    else:
        b.add("select", b.v[i], b.add("positive", Known(b.v[i].shape, "bool"), j), i, j)


# ---- steps of plain tensor functions ----------------------------------------------------------------------------------
def of_one(b, i, s):
    b.add(pick("tanh sigmoid square softplus negative abs sin cos bell same stop_gradient root logarithm hard_sigmoid general_relu elu round sign".split()), Known(s), i)


def of_two(b, i, s):
    j = pick(b.floats())
    try:
        b.add(pick("add subtract multiply maximum minimum quotient power".split()), Known(np.broadcast_shapes(s, b.v[j].shape)), i, j)
    except ValueError:
        pass


def reduction(b, i, s):
    if not s:
        return
    axes = [int(a - len(s) * rng.randint(2)) for a in rng.permutation(len(s))[:rng.randint(1, len(s) + 1)]] if chance(.7) else None
    whole = [a % len(s) for a in (range(len(s)) if axes is None else axes)]
    name = pick(["sum", "mean", "prod", "var", "logsumexp", "max", "min"]) if all(s[a] for a in whole) else pick(["sum", "prod"])
    keep = chance(.4)
    b.add(name, Known([1 if a in whole else d for a, d in enumerate(s) if keep or a not in whole]), i, axis=axes, keepdims=keep)


def along(b, i, s):
    if s and 0 not in s:
        b.add(pick(["cumsum", "cumprod", "softmax", "l2_normalize"]), Known(s), i, axis=int(rng.randint(-len(s), len(s))))


def moved(b, i, s):
    order = [int(a) for a in rng.permutation(len(s))]
    if s and chance(.5):
        b.add("permute_dimensions", Known([s[a] for a in order]), i, pattern=order)
    elif s and chance(.5):
        b.add("reverse", Known(s), i, axes=int(rng.randint(len(s))))
    else:
        b.add("transpose", Known(s[::-1]), i)


def reshaped(b, i, s):
    if len(s) < 5 and chance(.4):
        axis = int(rng.randint(-len(s) - 1, len(s) + 1))
        at = axis % (len(s) + 1)
        b.add("expand_dims", Known(s[:at] + (1,) + s[at:]), i, axis=axis)
    elif 1 in s and chance(.5):
        at = pick([a for a in range(len(s)) if s[a] == 1])
        b.add("squeeze", Known(s[:at] + s[at + 1:]), i, axis=at - len(s) * int(rng.randint(2)))
    elif s:
        to = [int(d) for d in rng.permutation(s)]
        b.add("reshape", Known(to), i, shape=[-1] + to[1:] if chance(.5) and 0 not in to else to)


def repeated(b, i, s):
    if not s or np.prod(s) > 60:
        return
    if chance(.5):
        axis, rep = int(rng.randint(len(s))), int(rng.randint(1, 4))
        if s[axis]:   # Keras refuses to repeat nothing
            b.add("repeat_elements", Known(s[:axis] + (s[axis] * rep,) + s[axis + 1:]), i, rep=rep, axis=axis)
    else:
        n = [int(k) for k in rng.randint(1, 3, len(s))]
        b.add("tile", Known([d * k for d, k in zip(s, n)]), i, n=n)


def joined(b, i, s):
    if chance(.5) and len(s) < 5:
        more = [pick([j for j in b.floats() if b.v[j].shape == s]) for _ in range(rng.randint(0, 3))]
        axis = int(rng.randint(-len(s) - 1, len(s) + 1))
        at = axis % (len(s) + 1)
        b.add("stack", Known(s[:at] + (1 + len(more),) + s[at:]), i, *more, axis=axis)
    elif s:
        at = int(rng.randint(len(s)))
        fits = [j for j in b.floats() if len(b.v[j].shape) == len(s) and all(x == y or a == at for a, (x, y) in enumerate(zip(s, b.v[j].shape)))]
        more = [pick(fits) for _ in range(rng.randint(1, 3))]
        b.add("concatenate", Known(s[:at] + (s[at] + sum(b.v[j].shape[at] for j in more),) + s[at + 1:]), i, *more, axis=at - len(s) * int(rng.randint(2)))


def indexed(b, i, s):
    parts, used = [], 0
    while used < len(s) and chance(.7):
        d = s[used]
        kind = rng.randint(6)
        if kind == 1:
            parts.append("None")
            continue
        low, high = rng.randint(-d - 1, d + 2, 2)
        step = int(pick([1, 1, 1, 2, -1, -2]))
        parts.append(str(int(rng.randint(-d, d))) if kind == 0 and d else
                     "%s:%s%s" % ("" if chance(.3) else low, "" if chance(.3) else high, "" if step == 1 else ":%d" % step))
        used += 1
    text = ",".join(parts + ["..."] * chance(.3))
    if text:
        shape = eval("np.zeros(s)[%s]" % text).shape
        if len(shape) < 6:
            b.add("index", Known(shape), i, text=text)


def product(b, i, s):
    fits = [j for j in b.floats() if len(s) > 1 and len(b.v[j].shape) > 1 and b.v[j].shape[-2] == s[-1]]
    if fits:
        j = pick(fits)
        shape = s[:-1] + b.v[j].shape[:-2] + b.v[j].shape[-1:]
        if len(shape) < 6:
            b.add("dot", Known(shape), i, j)


def gathered(b, i, s):
    if s and s[0]:
        ids = b.add("ints", Known((3,), "int32"), values=[int(k) for k in rng.randint(0, s[0], 3)])
        b.add("gather", Known((3,) + s[1:]), i, ids)


STRAIGHT = [of_one] * 4 + [of_two] * 5 + [reduction] * 3 + [along, moved, reshaped, repeated, joined, indexed, product, product, gathered]
CONTROL = [fold, map_of, rnn, rnn, switch, choice]


def grow(b, steps, depth):
    for _ in range(steps):
        if not b.floats():   # a map over integers
            return
        if depth < 3 and chance(.45 if depth == 0 else .22):
            pick(CONTROL)(b, depth)
            continue
        last = b.floats()[::-1]   # the later ones are liked better
        i = last[min(len(last) - 1, int(rng.exponential(2)))]
        pick(STRAIGHT)(b, i, b.v[i].shape)


# ---- what TensorFlow makes of it --------------------------------------------------------------------------------------
FUNCTIONS.update({
    "bell": lambda ts: tf.exp(-tf.square(ts[0])), "same": lambda ts: ts[0] * 1.0, "stop_gradient": lambda ts: tf.stop_gradient(ts[0]),
    "root": lambda ts: tf.sqrt(tf.square(ts[0]) + 0.5), "logarithm": lambda ts: tf.math.log(tf.square(ts[0]) + 0.5),
    "general_relu": lambda ts: K.relu(ts[0], 0.25, 1.0, 0.125), "quotient": lambda ts: ts[0] / (tf.square(ts[1]) + 1.0),
    "power": lambda ts: (tf.square(ts[0]) + 0.5) ** ts[1], "fill": lambda ts, shape: tf.broadcast_to(ts[0], shape),
    "positive": lambda ts: ts[0] > 0, "inc": lambda ts: ts[0] + 1, "select": lambda ts: tf.where(*ts),
    "fill_int": lambda ts, value, shape: tf.fill(shape, value), "ints": lambda ts, values: tf.constant(values, "int32"),
    "bits": lambda ts, values, shape, dtype: tf.cast(tf.reshape(tf.constant(values, "int32"), shape), dtype),
    "phase": lambda ts, training, test, lazy: ts[int(training == test)],
    "index": lambda ts, text: eval("ts[0][%s]" % text.replace("None", "tf.newaxis")),
})


def run(bodies, body, given):
    v = list(given)
    for name, operands, args in body.steps:
        ts = [v[i] for i in operands]
        made = LOOPS[name](bodies, ts, **args) if name in LOOPS else FUNCTIONS[name](ts, **args)
        v.extend(made if isinstance(made, list) else [made])
    return v


def run_fold(bodies, ts, body, output, right, alone):
    x = list(tf.unstack(ts[0]))[::-1 if right else 1]
    acc, x, captured = (x[0], x[1:], ts[1:]) if alone else (ts[1], x, ts[2:])
    for e in x:
        acc = run(bodies, bodies[int(body[1:])], [e, acc] + captured)[output]
    return acc


def run_map(bodies, ts, nx, body, output, dtype):
    def call(elements):
        return run(bodies, bodies[int(body[1:])], elements + ts[nx:])[output]
    n = ts[0].shape[0]
    if n == 0:
        y = call([tf.zeros(x.shape[1:], x.dtype) for x in ts[:nx]])
        return tf.zeros([0] + list(y.shape), y.dtype)
    return tf.stack([call([x[i] for x in ts[:nx]]) for i in range(n)])


def run_rnn(bodies, ts, nx, constants, body, new, output, mask, backwards, zeros, major, unroll):
    def step(elements, states):
        v = run(bodies, bodies[int(body[1:])], elements + states + captured)
        return v[output], [v[i] for i in new]

    def where(keep, a, b):
        return tf.where(tf.reshape(keep, [keep.shape[0]] + [1] * (len(a.shape) - 1)), a, b)
    xs, states, captured = ts[:nx], ts[nx:nx + len(new)], ts[nx + len(new):]
    if not major:
        xs = [tf.experimental.numpy.swapaxes(x, 0, 1) for x in xs]
    n = xs[0].shape[0]
    if mask != "none":
        keep, captured = captured[-1], captured[:-1]
        if mask == "lengths":
            keep = tf.range(n)[:, None] < keep[None]
        else:
            keep = tf.cast(tf.reshape(keep, keep.shape[:2]), tf.bool)
            keep = keep if major else tf.transpose(keep)
    outputs = []
    for t in range(n)[::-1 if backwards else 1]:
        y, now = step([x[t] for x in xs], states)
        if mask != "none":
            y = where(keep[t], y, tf.zeros_like(y) if zeros or not outputs else outputs[-1])
            now = [where(keep[t], a, b) for a, b in zip(now, states)]
        outputs.append(y)
        states = now
    if outputs:
        return [outputs[-1], tf.stack(outputs, 0 if major else 1)] + states
    y = tf.zeros_like(step([tf.zeros(x.shape[1:], x.dtype) for x in xs], states)[0])
    return [y, tf.stack([y], 0 if major else 1)[:0] if major else tf.stack([y], 1)[:, :0]] + states


def run_switch(bodies, ts, yes, no, outputs):
    taken = bool(ts[0])
    return run(bodies, bodies[int((yes if taken else no)[1:])], ts[1:])[outputs[not taken]]


LOOPS = {"fold": run_fold, "map": run_map, "rnn": run_rnn, "switch": run_switch}


def weighted(tensors, by, period):
    return tf.add_n([tf.reduce_sum(t * tf.reshape(1 + by * tf.cast(tf.range(tf.size(t)) % period, F), tf.shape(t))) for t in tensors])


def program(seed):
    rng.seed(seed)
    given = [Known(pick(SHAPES)) for _ in range(rng.randint(2, 6))]
    if chance(.6):
        given.append(Known(pick([(2, 3, 2), (2, 4, 3), (3, 2, 2)])))
    bodies = []
    main = Body(bodies, given)
    grow(main, rng.randint(3, 11), 0)
    # No ties: which of equal elements is the largest is decided by the last bit of what came before.
    ts = [tf.constant(np.round(rng.uniform(-1, 1, t.shape), 3), F) for t in given]
    outputs = [i for i in range(len(given), len(main.v)) if main.v[i].dtype != "bool"][-4:]
    if not outputs:
        return
    with tf.GradientTape() as outer, tf.GradientTape() as tape:
        for t in ts:
            outer.watch(t)
            tape.watch(t)
        v = run(bodies, main, ts)
        for t, known in zip(v, main.v):
            assert (tuple(t.shape), t.dtype.name) == (known.shape, known.dtype), (t.shape, known.shape, known.dtype)
        y = tf.concat([tf.reshape(tf.cast(v[i], F), [-1]) for i in outputs], 0)
        first = [None if g is None else dense(g) for g in tape.gradient(weighted([y], 0.5, 3), ts)]
        there = [g for g in first if g is not None]
        total = weighted(there, 0.25, 5) if there else None
    second = outer.gradient(total, ts) if there else [None] * len(ts)
    gradients = first + [None if g is None else dense(g) for g in second]
    if all(np.all(np.abs(g.numpy()) < 1e5) for g in [y] + [g for g in gradients if g is not None]):   # neither nan nor inf
        args = {"body": repr(main), **{"body%d" % i: repr(b) for i, b in enumerate(bodies)}, "outputs": argument_text(outputs)}
        emit(" ".join(["program"] + ["%s=%s" % a for a in args.items()] + [tensor_text(t, exact=True) for t in ts]) + " -> " + tensor_text(y) + " | " +
             " ".join("-" if g is None else tensor_text(g) for g in gradients))


if __name__ == "__main__":
    print("# Written by keras_cases/programs.py, which says how to read it, with TensorFlow %s." % tf.__version__)
    for seed in list(range(int(sys.argv[1]), int(sys.argv[2]))) + [int(s) for s in sys.argv[3:]]:
        try:
            program(seed)
        except (LookupError, tf.errors.OpError):   # an op of TensorFlow's without a second gradient, or without kernels for that rank or size 0
            pass
