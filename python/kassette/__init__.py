"""kassette: eager tensors with tape autograd, behind the Keras backend API.

`kassette.keras` is a backend for Keras 2.3: KERAS_BACKEND=kassette.keras python train.py
"""
from ._core import Tensor, __version__

__all__ = ["Tensor", "__version__"]
