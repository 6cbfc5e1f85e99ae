"""What the array API standard asks of the class of arrays, for kassette.Tensor. Imported by the package; kassette.numpy comes when it is asked for."""
import importlib
import math

from ._core import Tensor


def _namespace():
    return importlib.import_module("kassette.numpy")


def __array_namespace__(self, /, *, api_version=None):
    """kassette.numpy."""
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(f"__array_namespace__: api_version: is {api_version}; it must be 2024.12 or an earlier one")
    return _namespace()


def to_device(self, device, /, *, stream=None):
    """The array on another device: 'cpu', 'cuda:0', ..."""
    if stream is not None:
        raise ValueError("to_device: stream: is given; it must be None, a copy follows what the array's own stream has to do")
    return _namespace().asarray(self, device=device)


def T(self):
    """With the axes in reverse order."""
    return _namespace().permute_dims(self)


def mT(self):
    """With the last two axes exchanged."""
    return _namespace().matrix_transpose(self)


def size(self):
    """The number of elements, None where it is not known."""
    return None if self.shape is None or None in self.shape else math.prod(self.shape)


for _method in (__array_namespace__, to_device):
    setattr(Tensor, _method.__name__, _method)
for _property in (T, mT, size):
    setattr(Tensor, _property.__name__, property(_property, doc=_property.__doc__))
