"""tests/data/keras_cases/loops.py - rnn, foldl, foldr and map_fn with bodies made by chance.

A body is text: steps name(operands|argument=value), each of which adds a tensor to those that it begins with: the elements,
the states, what is captured. The result of a case is all that the loop gives, flat, one after the other.
"""
from ask import *


class Body:
    def __init__(self, *shapes):
        self.steps, self.shapes = [], list(shapes)

    def add(self, name, shape, *operands, **args):
        self.steps.append((name, operands, args))
        self.shapes.append(shape)
        return len(self.shapes) - 1

    def run(self, tensors):
        v = list(tensors)
        for name, operands, args in self.steps:
            v.append(FUNCTIONS[name]([v[i] for i in operands], **args))
        return v

    def __repr__(self):
        return ";".join("%s(%s)" % (name, "|".join([",".join(map(str, operands))] + ["%s=%s" % (k, argument_text(a)) for k, a in args.items()]))
                        for name, operands, args in self.steps)


def flat(tensors):
    return tf.concat([tf.reshape(t, [-1]) for t in tensors], 0)


def rnn(ts, body, new, output, masked=False, backwards=False, zeros=False, checkpoint=0):
    x, states, rest = ts[0], ts[1:1 + len(new)], ts[1 + len(new):]
    mask, captured = (rest[-1], rest[:-1]) if masked else (None, rest)
    outputs = []
    for t in reversed(range(x.shape[1])) if backwards else range(x.shape[1]):
        v = body.run([x[:, t]] + states + captured)
        y, now = v[output], [v[i] for i in new]
        if masked:
            keep = mask[:, t, None]
            y = tf.where(keep, y, tf.zeros_like(y) if zeros or not outputs else outputs[-1])
            now = [tf.where(keep, a, b) for a, b in zip(now, states)]
        outputs.append(y)
        states = now
    return flat([outputs[-1], tf.stack(outputs, 1)] + states)


def fold(ts, body, output, right=False, checkpoint=0):
    x, acc = ts[:2]
    for i in reversed(range(x.shape[0])) if right else range(x.shape[0]):
        acc = body.run([x[i], acc] + ts[2:])[output]
    return flat([acc])


def map_of(ts, body, output, checkpoint=0):
    return flat([tf.stack([body.run([ts[0][i]] + ts[1:])[output] for i in range(ts[0].shape[0])])])


FUNCTIONS.update({"rnn": lambda ts, **a: rnn(ts, **a), "fold": lambda ts, **a: fold(ts, **a), "map_fn": lambda ts, **a: map_of(ts, **a)})


def grow(body, steps):
    """Steps by chance, on any of the tensors so far; the later ones are liked better."""
    for _ in range(steps):
        n = len(body.shapes)
        i = n - 1 - min(n - 1, int(rng.exponential(3)))
        s, kind = body.shapes[i], rng.randint(10)
        if kind < 3:
            body.add(pick(["tanh", "sigmoid", "square", "softplus", "negative", "abs", "sin"]), s, i)
        elif kind < 6:
            j = rng.randint(n)
            try:
                body.add(pick(["add", "subtract", "multiply", "maximum", "minimum"]), np.broadcast_shapes(s, body.shapes[j]), i, j)
            except ValueError:
                pass
        elif kind < 8 and s:
            fits = [j for j in range(n) if len(body.shapes[j]) == 2 and body.shapes[j][0] == s[-1] and len(s) == 2]
            if fits:
                j = pick(fits)
                body.add("dot", s[:-1] + body.shapes[j][-1:], i, j)
        elif kind == 8 and s:
            axis = int(rng.randint(len(s)))
            body.add(pick(["sum", "mean", "max", "logsumexp"]), s[:axis] + (1,) + s[axis + 1:], i, axis=axis, keepdims=True)
        elif s:
            body.add("reverse", s, i, axes=len(s) - 1)


def like(body, shape):
    """The last tensor of that shape, bounded: what becomes a state does not grow."""
    i = max(i for i, s in enumerate(body.shapes) if s == shape)
    return body.add("tanh", shape, i)


def loops():
    def r(shape):
        return random(shape, "float64", -1, 1)

    for n, t, h in [(1, 1, 1), (2, 3, 2), (3, 4, 1)]:
        for backwards, masked, zeros, checkpoint in [(False, False, False, 0), (True, False, False, 2), (False, True, False, 0), (True, True, True, 1)]:
            # An LSTM: x, h, c, then the matrices of both and the bias.
            b = Body((n, h), (n, h), (n, h), (h, 4 * h), (h, 4 * h), (4 * h,))
            z = b.add("add", (n, 4 * h), b.add("add", (n, 4 * h), b.add("dot", (n, 4 * h), 0, 3), b.add("dot", (n, 4 * h), 1, 4)), 5)
            i, f, c, o = [b.add("slice", (n, h), z, start=[0, k * h], size=[-1, h]) for k in range(4)]
            i, f, c, o = [b.add("tanh" if g == c else "sigmoid", (n, h), g) for g in (i, f, c, o)]
            c = b.add("add", (n, h), b.add("multiply", (n, h), f, 2), b.add("multiply", (n, h), i, c))
            y = b.add("multiply", (n, h), o, b.add("tanh", (n, h), c))
            mask = [random((n, t), "bool")] if masked else []
            case("rnn", r((n, t, h)), r((n, h)), r((n, h)), r((h, 4 * h)), r((h, 4 * h)), r((4 * h,)), *mask,
                 body=b, new=[y, c], output=y, masked=masked, backwards=backwards, zeros=zeros, checkpoint=checkpoint)
    for _ in range(36):
        n, t, h = pick([1, 2, 3]), pick([1, 2, 3, 5]), pick([1, 2, 3])
        states = [(n, h)] * pick([1, 1, 2])
        captured = [pick([(h, h), (h,), ()]) for _ in range(rng.randint(0, 4))]
        b = Body((n, h), *states, *captured)
        grow(b, rng.randint(2, 10))
        new = [like(b, s) for s in states]
        output = max(i for i, s in enumerate(b.shapes[:-len(states)]) if len(s) == 2 and s[0] == n and i not in range(1 + len(states), 1 + len(states) + len(captured)))
        masked = bool(rng.rand() < 0.3)
        mask = [random((n, t), "bool")] if masked else []
        case("rnn", r((n, t, h)), *map(r, states), *map(r, captured), *mask, body=b, new=new, output=output, masked=masked,
             backwards=bool(rng.randint(2)), zeros=bool(rng.randint(2)), checkpoint=pick([0, 0, 2]))
    for k in range(48):
        h, n = pick([1, 2, 3]), pick([1, 2, 3, 5])
        shapes = [pick([(h,), (h, h), ()]) for _ in range(rng.randint(1, 4))]
        x = pick([(h,), (2, h), (h, h), ()])
        if k % 2:
            acc = pick([x, (h, h)])
            b = Body(x, acc, *shapes)
            grow(b, rng.randint(2, 9))
            case("fold", r((n,) + x), r(acc), *map(r, shapes), body=b, output=like(b, acc), right=bool(rng.randint(2)), checkpoint=pick([0, 0, 2]))
        else:
            b = Body(x, *shapes)
            grow(b, rng.randint(2, 9))
            case("map_fn", r((n,) + x), *map(r, shapes), body=b, output=len(b.shapes) - 1, checkpoint=pick([0, 0, 2]))
