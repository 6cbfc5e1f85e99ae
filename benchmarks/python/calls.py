"""What a call from Python takes: a K function and an operator on placeholders, a function on a NumPy array, importing the extension. One JSON line."""
import json
import subprocess
import sys
import time

import kassette.keras as K
import numpy as np


def seconds(f):
    """The median over 21 samples of 2000 calls."""
    samples = []
    for _ in range(21):
        start = time.perf_counter()
        for _ in range(2000):
            f()
        samples.append((time.perf_counter() - start) / 2000)
    return sorted(samples)[10]


IMPORT = """
import time, numpy
start = time.perf_counter()
import kassette._core
print(time.perf_counter() - start)
"""
x, y = K.placeholder((None, 8)), K.placeholder((None, 8))
f, array = K.function([x], [K.relu(x)]), np.ones((4, 8), "float32")
loaded = sorted(float(subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True).stdout) for _ in range(7))[3]
print(json.dumps({"square": seconds(lambda: K.square(x)), "add": seconds(lambda: x + y), "function": seconds(lambda: f([array])), "import": loaded}))
