#!/usr/bin/env python3
"""tests/data/files/make.py - the files that tests/io reads, written by NumPy, safetensors and Pillow.

    make.py FOLDER            writes them (what a missing package would write is left out)
    make.py --check FOLDER    reads what tests/io wrote there, with the same packages

Element i of every array is number(dtype, i): the tests compute the same.
"""
import gzip
import itertools
import os
import struct
import sys
import zlib

import numpy as np

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

DTYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]
SHAPES = {"scalar": (), "vector": (5,), "matrix": (2, 3), "cube": (2, 3, 4), "empty": (0, 3), "eight": (1, 2, 1, 2, 1, 2, 1, 2)}


def number(dtype, i):
    if dtype == "bool":
        return i % 3 == 1
    v = (i * 37 + 11) % 97
    return v if dtype.startswith("uint") else v - 48 if dtype.startswith("int") else (v - 48) / 8


def array(dtype, shape):
    n = int(np.prod(shape, dtype=np.int64))
    return np.array([number(dtype, i) for i in range(n)], dtype=dtype).reshape(shape)


def arrays():
    for dtype, (shape_name, shape) in itertools.product(DTYPES, SHAPES.items()):
        x = array(dtype, shape)
        yield f"{dtype}/{shape_name}/c", x
        if len(shape) > 1:
            yield f"{dtype}/{shape_name}/fortran", np.asfortranarray(x)
        if x.dtype.itemsize > 1:
            yield f"{dtype}/{shape_name}/big", x.astype(x.dtype.newbyteorder(">"))


def png_by_hand(path, width, height, bits, color, rows, interlaced, extra=()):
    """A PNG without any library, for what Pillow does not write. rows(y, x) gives the samples of a pixel."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color]
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)] if interlaced else [(0, 0, 1, 1)]
    raw = b""
    for x0, y0, dx, dy in passes:
        xs, ys = range(x0, width, dx), range(y0, height, dy)
        if not len(xs):
            continue
        for y in ys:
            value, used, line = 0, 0, b""
            for sample in itertools.chain.from_iterable(rows(y, x) for x in xs):
                value, used = value << bits | sample, used + bits
                if used % 8 == 0:
                    line += value.to_bytes(used // 8, "big")
                    value = used = 0
            if used:
                line += (value << (8 - used)).to_bytes(1, "big")
            raw += b"\0" + line
    assert channels

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, interlaced)))
        for kind, data in extra:
            f.write(chunk(kind, data))
        f.write(chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def write_pngs(folder):
    """7 x 5 pictures; sample c of pixel (y, x) is (y * 53 + x * 29 + c * 71) modulo what its bits can hold."""
    def samples(channels, bits):
        return lambda y, x: [(y * 53 + x * 29 + c * 71 + (y * x << 8)) % (1 << bits) for c in range(channels)]
    for color, channels, name in [(0, 1, "gray"), (4, 2, "gray_alpha"), (2, 3, "rgb"), (6, 4, "rgba")]:
        for bits in (8, 16):
            for interlaced in (0, 1):
                png_by_hand(f"{folder}/{name}_{bits}{'_interlaced' if interlaced else ''}.png", 7, 5, bits, color, samples(channels, bits), interlaced)
    for bits in (1, 2, 4):
        png_by_hand(f"{folder}/gray_{bits}.png", 7, 5, bits, 0, samples(1, bits), 0)
    palette = bytes((i * 40 + c * 13) % 256 for i in range(4) for c in range(3))
    png_by_hand(f"{folder}/palette.png", 7, 5, 2, 3, samples(1, 2), 0, [(b"PLTE", palette)])
    png_by_hand(f"{folder}/palette_alpha.png", 7, 5, 2, 3, samples(1, 2), 0, [(b"PLTE", palette), (b"tRNS", bytes([0, 100, 200, 255]))])


def write(folder):
    os.makedirs(folder, exist_ok=True)
    everything = dict(arrays())
    np.savez(f"{folder}/arrays.npz", **everything)
    np.savez_compressed(f"{folder}/arrays_deflated.npz", **everything)
    with open(f"{folder}/version2.npy", "wb") as f:
        np.lib.format.write_array(f, array("float32", (2, 3)), version=(2, 0))
    with open(f"{folder}/version3.npy", "wb") as f:
        np.lib.format.write_array(f, np.asfortranarray(array("int16", (2, 3, 4))), version=(3, 0))
    np.savez(f"{folder}/mixed.npz", w=np.arange(3, dtype="float32"), u=np.arange(3, dtype="uint32"), t=np.array(["a", "b"]),
             big=np.array([1, 2**63], dtype="uint64"))
    np.save(f"{folder}/uint32.npy", np.arange(3, dtype="uint32"))
    np.save(f"{folder}/structure.npy", np.zeros(2, dtype=[("a", "f4"), ("b", "i4")]))
    np.save(f"{folder}/complex.npy", np.zeros(2, dtype="complex64"))
    np.save(f"{folder}/object.npy", np.array([None, 1], dtype=object), allow_pickle=True)
    np.save(f"{folder}/special.npy", np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324]))
    if ml_dtypes:
        np.save(f"{folder}/bfloat16.npy", array("float32", (2, 3)).astype(ml_dtypes.bfloat16))
    with gzip.GzipFile(f"{folder}/images.idx.gz", "wb", mtime=0) as f:
        f.write(struct.pack(">HBBIII", 0, 8, 3, 2, 3, 4) + array("uint8", (2, 3, 4)).tobytes())
    with open(f"{folder}/float.idx", "wb") as f:
        f.write(struct.pack(">HBBII", 0, 13, 2, 2, 3) + array("float32", (2, 3)).astype(">f4").tobytes())
    write_pngs(folder)
    try:
        from safetensors.numpy import save_file
    except ImportError:
        return
    tensors = {f"{d}/{n}": array(d, s) for d in DTYPES for n, s in SHAPES.items()}
    if ml_dtypes:
        tensors["bfloat16/matrix"] = array("float32", (2, 3)).astype(ml_dtypes.bfloat16)
    save_file(tensors, f"{folder}/model.safetensors", metadata={"format": "np", "title": "ÄÖ \"quoted\" \\ \n"})


def same(got, dtype, shape, where):
    wanted = array(dtype, shape)
    assert got.dtype == wanted.dtype or got.dtype.newbyteorder("=") == wanted.dtype, (where, got.dtype)
    assert got.shape == wanted.shape and np.array_equal(got, wanted), (where, got, wanted)


def check(folder):
    """tests/io wrote NAME.npz and so on with the same names and elements."""
    seen = 0
    for name in ("ours.npz", "ours_deflated.npz"):
        with np.load(f"{folder}/{name}") as z:
            for dtype, (shape_name, shape) in itertools.product(DTYPES, SHAPES.items()):
                same(z[f"{dtype}/{shape_name}"], dtype, shape, name)
                seen += 1
    for dtype, (shape_name, shape) in itertools.product(DTYPES, SHAPES.items()):
        for order in ("c", "fortran", "big", "both"):
            x = np.load(f"{folder}/{dtype}-{shape_name}-{order}.npy")
            same(x, dtype, shape, order)
            assert order in ("c", "big") or len(shape) < 2 or 0 in shape or x.flags.f_contiguous
            seen += 1
    if ml_dtypes:
        x = np.load(f"{folder}/bfloat16.npy").view(ml_dtypes.bfloat16)
        assert np.array_equal(x.astype("float32"), array("float32", (2, 3)))
        seen += 1
    same(np.loadtxt(f"{folder}/ours.csv", delimiter=",", skiprows=1), "float64", (2, 3), "csv")
    try:
        from safetensors import safe_open
    except ImportError:
        print(f"{seen} arrays; safetensors is not here")
        return
    with safe_open(f"{folder}/ours.safetensors", framework="np") as f:
        assert f.metadata() == {"format": "kassette", "title": "ÄÖ \"quoted\" \\ \n"}, f.metadata()
        for dtype, (shape_name, shape) in itertools.product(DTYPES, SHAPES.items()):
            same(f.get_tensor(f"{dtype}/{shape_name}"), dtype, shape, "safetensors")
            seen += 1
    try:
        from PIL import Image
    except ImportError:
        print(f"{seen} arrays; Pillow is not here")
        return
    for channels, mode in [(1, "L"), (2, "LA"), (3, "RGB"), (4, "RGBA")]:
        picture = Image.open(f"{folder}/ours_{channels}.png")
        got = np.asarray(picture).reshape(5, 7, channels)
        wanted = np.array([[[(y * 53 + x * 29 + c * 71) % 256 for c in range(channels)] for x in range(7)] for y in range(5)])
        assert picture.mode == mode and np.array_equal(got, wanted), mode
        seen += 1
    print(f"{seen} arrays")


if __name__ == "__main__":
    if sys.argv[1] == "--check":
        check(sys.argv[2])
    else:
        write(sys.argv[1])
