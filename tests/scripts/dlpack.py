"""tests/scripts/dlpack.py LIBRARY - DLPack between kassette and NumPy in one process, both ways."""
import ctypes
import gc
import sys

import numpy as np

lib = ctypes.CDLL(sys.argv[1])
lib.ours.restype = ctypes.c_void_p
api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
USED = b"used_dltensor"
DTYPES = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


class Ours:
    """A tensor of kassette's as NumPy asks for it."""

    def __init__(self, dtype, rows, columns):
        self.pointer = lib.ours(dtype.encode(), rows, columns)

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        return api.PyCapsule_New(self.pointer, b"dltensor", None)


def take(array):
    """What kassette makes of an array; the capsule is spent only where it took it."""
    capsule = array.__dlpack__()
    text = ctypes.create_string_buffer(4096)
    found = lib.theirs(ctypes.c_void_p(api.PyCapsule_GetPointer(capsule, b"dltensor")), ctypes.c_void_p(array.ctypes.data), text, 4096)
    if found >= 0:
        api.PyCapsule_SetName(capsule, USED)
    return text.value.decode(), found


for dtype in DTYPES:
    for rows, columns in [(2, 3), (1, 1), (0, 3)]:
        x = np.from_dlpack(Ours(dtype, rows, columns))
        expected = np.arange(rows * columns).reshape(rows, columns).astype(dtype)
        assert x.dtype == expected.dtype and x.shape == expected.shape, (dtype, x.dtype, x.shape)
        assert (x == expected).all(), (dtype, x)
        text, same = take(expected)
        assert text == f"{dtype} {expected}", (text, expected)
        assert same == (expected.size > 0), (dtype, rows)

a = np.arange(12, dtype="float32").reshape(3, 4)
for view in [a.T, a[:, ::2], a[::-1], a[1], np.broadcast_to(a[0], (2, 4)).copy()]:
    before = sys.getrefcount(a)
    text, same = take(view)
    assert text == f"float32 {view}", (text, view)
    assert same == view.flags.c_contiguous, view.strides
    gc.collect()
    assert sys.getrefcount(a) == before, "NumPy's array was not let go"
text, found = take(np.zeros(2, "complex64"))
assert found == -1 and text == "from_dlpack: a tensor has no dtype complex64", text
print("numpy", np.__version__, "and kassette agree on", len(DTYPES), "dtypes")
