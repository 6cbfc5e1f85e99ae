"""kassette: eager tensors with tape autograd, behind the Keras backend API.

`kassette.numpy` are arrays as NumPy has them. `kassette.keras` is a backend for Keras 2.3: KERAS_BACKEND=kassette.keras python train.py
"""
from . import _array
from ._core import (Tensor, __version__, detect_nan, device_count, device_name, empty_cache, from_dlpack, memory_stats, profile,
                    reset_peak_memory, synchronize)

__all__ = ["Tensor", "__version__", "detect_nan", "device_count", "device_name", "empty_cache", "from_dlpack", "memory_stats", "profile",
           "reset_peak_memory", "synchronize"]
