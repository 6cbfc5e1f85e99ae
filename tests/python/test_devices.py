"""Devices, and arrays of other libraries through DLPack. What asks for CUDA is skipped without it; .ci/run has it run on the emulated device."""
import gc
import sys

import numpy as np
import pytest

import kassette
import kassette.keras as K

cuda = pytest.mark.skipif(kassette.device_count() == 0, reason="there is no CUDA device")
SAMPLES = [np.arange(6, dtype="float32").reshape(2, 3), np.array(2.5), np.zeros((0, 3), "int64"), np.array([True, False]), np.arange(4, dtype="uint8")]


def value(x):
    return K.get_value(x.to("cpu"))


# ---- the CPU -----------------------------------------------------------------------------------------------------------------------

def test_arrays_and_tensors_share_memory():
    for a in SAMPLES:
        x = kassette.from_dlpack(a)
        assert x.dtype == str(a.dtype) and x.shape == a.shape and x.device == "cpu"
        assert x.__dlpack_device__() == (1, 0) == a.__dlpack_device__()
        back = np.from_dlpack(x)
        np.testing.assert_array_equal(back, a)
        assert a.size == 0 or (np.shares_memory(back, a) and not back.flags.writeable)   # a tensor's value does not change


def test_what_a_tensor_cannot_lie_over_is_copied():
    a = np.arange(12.0).reshape(3, 4)
    for view in (a.T, a[:, ::2], a[::-1]):
        x = kassette.from_dlpack(view)
        np.testing.assert_array_equal(value(x), view)
        assert not np.shares_memory(np.from_dlpack(x), a)


def test_memory_is_kept_as_long_as_somebody_reads_it():
    a = np.arange(5.0)
    before = sys.getrefcount(a)
    x = kassette.from_dlpack(a)
    assert sys.getrefcount(a) == before + 1
    del x
    gc.collect()
    assert sys.getrefcount(a) == before

    n = 1 << 20
    live = kassette.memory_stats()["live"]
    view = np.from_dlpack(K.variable(np.ones(n, "float32")))   # its tensor is gone
    assert kassette.memory_stats()["live"] >= live + 4 * n and view.sum() == n
    del view
    gc.collect()
    assert kassette.memory_stats()["live"] < live + 4 * n
    K.variable(np.ones(n, "float32")).__dlpack__()   # a capsule that nobody takes
    gc.collect()
    assert kassette.memory_stats()["live"] < live + 4 * n


class Wrapped:
    """A producer of which one can see how it was asked."""

    def __init__(self, array, takes=("stream", "max_version")):
        self.array, self.takes, self.asked = array, takes, []

    def __dlpack__(self, **how):
        if set(how) - set(self.takes):
            raise TypeError("unexpected keyword")
        self.asked.append(how)
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_producers_are_asked_for_the_version_that_they_know():
    a = K.variable([1.0, 2.0])
    new, old = Wrapped(a), Wrapped(a, takes=("stream",))
    for producer in (new, old):
        np.testing.assert_array_equal(value(kassette.from_dlpack(producer)), [1, 2])
    assert new.asked == [{"max_version": (1, 0)}] and old.asked == [{}]
    assert "dltensor_versioned" in repr(a.__dlpack__(max_version=(1, 0))) and "versioned" not in repr(a.__dlpack__(max_version=(0, 8)))


def test_a_capsule_is_taken_once():
    class Once:
        capsule = K.variable([1.0]).__dlpack__()

        def __dlpack__(self, **how):
            return self.capsule

        def __dlpack_device__(self):
            return (1, 0)

    assert value(kassette.from_dlpack(Once())) == [1]
    with pytest.raises(TypeError, match="^from_dlpack: what __dlpack__ gave is no capsule of DLPack, or was taken before$"):
        kassette.from_dlpack(Once())


def test_a_copy_may_be_written_to():
    class Asks:
        def __init__(self, x):
            self.x, self.__dlpack_device__ = x, x.__dlpack_device__

        def __dlpack__(self, **asked):
            return self.x.__dlpack__(**{**asked, "copy": True})

    for x in (K.variable([1.0, 2.0]), kassette.from_dlpack(np.arange(6.0).reshape(2, 3).T)):
        copy = np.from_dlpack(Asks(x))
        before = value(x).tolist()
        assert copy.tolist() == before and copy.flags.writeable == (np.lib.NumpyVersion(np.__version__) >= "2.1.0")   # those before ask for no version
        if copy.flags.writeable:
            copy[...] = 7
        assert value(x).tolist() == before


def test_what_cannot_be_exchanged_is_refused():
    x = K.variable([1.0])
    with pytest.raises(BufferError, match="^__dlpack__: a tensor on the CPU has no stream$"):
        x.__dlpack__(stream=1)
    with pytest.raises(BufferError, match="^__dlpack__: the tensor is on cpu; Tensor.to copies it to another device$"):
        x.__dlpack__(dl_device=(2, 0))
    assert np.from_dlpack(kassette.from_dlpack(SAMPLES[0])) is not None and x.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(TypeError, match="^from_dlpack: an object with __dlpack__ and __dlpack_device__ is expected, not int$"):
        kassette.from_dlpack(3)
    with pytest.raises(TypeError, match="complex"):
        kassette.from_dlpack(np.array([1j]))
    with pytest.raises(ValueError):
        K.placeholder((2,)).__dlpack__()


def test_devices_have_names_and_memory():
    assert kassette.device_name("cpu") == "cpu" and kassette.device_count() >= 0
    kassette.synchronize("cpu")
    stats = kassette.memory_stats()
    assert set(stats) == {"live", "cached", "peak", "limit", "allocations"} and stats["peak"] >= stats["live"]
    x = K.variable(np.ones(1 << 20, "float32"))
    assert kassette.memory_stats("cpu")["peak"] >= 1 << 22
    del x
    gc.collect()
    kassette.reset_peak_memory()
    kassette.empty_cache()
    stats = kassette.memory_stats()
    assert stats["peak"] == stats["live"] and stats["cached"] == 0
    with pytest.raises(TypeError, match="^synchronize: a device such as 'cpu' or 'cuda:0' is expected, not int$"):
        kassette.synchronize(0)
    with pytest.raises(RuntimeError):
        kassette.device_name("cuda:99")
    with pytest.raises(RuntimeError):
        K.variable([1.0]).to("cuda:99")


# ---- CUDA --------------------------------------------------------------------------------------------------------------------------

@cuda
def test_a_tensor_goes_to_a_device_and_back():
    a = SAMPLES[0]
    x = K.constant(a).to("cuda:0")
    assert x.device == "cuda:0" and x.to("cuda:0").device == "cuda:0" and x.__dlpack_device__() == (2, 0)
    np.testing.assert_array_equal(value(x), a)
    kassette.synchronize("cuda:0")
    assert kassette.device_name("cuda:0") and kassette.memory_stats("cuda:0")["live"] > 0


@cuda
def test_a_consumer_reads_on_its_stream():
    x = K.constant(SAMPLES[0]).to("cuda:0")
    seen = []

    class Consumer:   # asks as from_dlpack does, and notes the stream
        def __dlpack__(self, stream=None, **how):
            seen.append(stream)
            return x.__dlpack__(stream=stream, **how)

        def __dlpack_device__(self):
            return x.__dlpack_device__()

    y = kassette.from_dlpack(Consumer())
    assert isinstance(seen[0], int) and seen[0] > 2   # kassette's own, which is none of CUDA's default streams
    assert y.device == "cuda:0"
    np.testing.assert_array_equal(value(y), SAMPLES[0])
    for stream in (None, -1, seen[0]):
        assert "dltensor" in repr(x.__dlpack__(stream=stream))
    for stream in (0, -2):
        with pytest.raises(ValueError, match=f"^__dlpack__: stream is {stream}; on a CUDA device it must be None, -1, 1, 2 or a cudaStream_t$"):
            x.__dlpack__(stream=stream)
    with pytest.raises(BufferError, match="^__dlpack__: the tensor is on cuda:0; Tensor.to copies it to another device$"):
        x.__dlpack__(dl_device=(1, 0))
