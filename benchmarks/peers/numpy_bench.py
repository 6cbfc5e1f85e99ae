"""NumPy, and SciPy's erf and cdist: eager, on one thread but for the products and factorisations of its OpenBLAS."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import timer

o = timer.parse()
import array_rows
import numpy as np
import scipy.spatial.distance
import scipy.special


def operation(f, *arrays):
    return lambda: f(*arrays)


def top_k(x):
    best = np.argpartition(x, -10)[:, -10:]
    values = np.take_along_axis(x, best, 1)
    order = np.argsort(-values)
    return np.take_along_axis(values, order, 1), np.take_along_axis(best, order, 1)


def set_one(x, v):
    y = x.copy()
    y[2] = v[0]
    return y


def add_at(x, i, v):
    y = x.copy()
    np.add.at(y, i, v)
    return y


array_rows.add(
    np,
    operation,
    cdist=scipy.spatial.distance.cdist,
    top_k=top_k,
    erf=scipy.special.erf,
    set_one=set_one,
    add_at=add_at,
    segment_sum=lambda x, i: np.bincount(i, x, 1000),
    masks=True,
)
timer.run(o, peer="numpy", version=np.__version__)
