"""The programs that measure: ours, the machine's limits, OpenBLAS alone, and the peers."""

import glob
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = os.path.join(HERE, "peers")
LEVEL_FLAGS = {
    "sse2": [],
    "avx2": ["-mavx2", "-mfma"],
    "avx512": [
        "-mavx512f",
        "-mavx512bw",
        "-mavx512dq",
        "-mavx512vl",
        "-mfma",
        "-mprefer-vector-width=512",
    ],
}


class Program:
    """command: as started; rows: regular expression of what it is asked for; env: added."""

    def __init__(self, name, command, rows=".*", env=None):
        self.name, self.command, self.rows, self.env = name, command, rows, env or {}


def environment(threads):
    """The same for all, without OPENBLAS_CORETYPE: a wrong one costs a factor of two to ten."""
    env = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
    return dict(env, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads))


def package(folder, venv, path):
    found = (
        glob.glob(os.path.join(folder, venv, "lib/python3*/site-packages", path)) if folder else []
    )
    return found[0] if found else None


def compile_if_older(out, sources, flags, depends=()):
    """g++ sources -o out, unless out is newer than all of them."""
    newest = max(os.path.getmtime(p) for p in [*sources, *depends, os.path.abspath(__file__)])
    if os.path.exists(out) and os.path.getmtime(out) > newest:
        return out
    print("building", os.path.basename(out), file=sys.stderr, flush=True)
    subprocess.run(["g++", *sources, "-o", out, *flags], check=True)
    return out


def limits(build):
    folder, timer = os.path.join(PEERS, "limits"), os.path.join(HERE, "timer.h")
    header, kernels = os.path.join(folder, "kernels.h"), os.path.join(folder, "kernels.cpp")
    common = ["-std=c++17", "-O3", "-ffp-contract=fast", "-fno-math-errno"]
    objects = [
        compile_if_older(
            os.path.join(build, f"limits_{level}.o"),
            [kernels],
            [*common, "-c", f"-DLEVEL={level}", f"-DLEVEL_SPACE={level}_kernels", *flags],
            [header],
        )
        for level, flags in LEVEL_FLAGS.items()
    ]
    return compile_if_older(
        os.path.join(build, "limits"),
        [os.path.join(folder, "bench.cpp"), *objects],
        [*common, "-pthread"],
        [timer, header],
    )


def peer_flags(folder, peer):
    """Compile and link flags of a C++ peer, or None where it is not installed."""
    root = package(folder, peer, peer)
    if not root:
        return None
    include = {
        "torch": [f"-I{root}/include", f"-I{root}/include/torch/csrc/api/include"],
        "mlx": [f"-I{root}/include"],
    }
    link = {"torch": ["-ltorch_cpu", "-lc10"], "mlx": ["-lmlx"]}
    return (
        ["-std=c++20", *include[peer]],
        [f"-L{root}/lib", *link[peer], f"-Wl,-rpath,{root}/lib", "-Wl,--allow-shlib-undefined"],
    )


def kassette_flags(build):
    return (
        ["-std=c++17", f"-I{HERE}/../include"],
        [f"-L{build}/lib", "-lkassette", f"-Wl,-rpath,{build}/lib"],
    )


def stubs(folder):
    return {"LD_LIBRARY_PATH": os.path.join(folder, "stubs")} if folder else {}


def all_programs(build, folder):
    """Every program that can run here, ours first. `folder` is what install.sh filled, or None."""
    work = os.path.join(build, "benchmarks", "peers")
    os.makedirs(work, exist_ok=True)
    timer = os.path.join(HERE, "timer.h")
    found = [
        Program("kassette", [os.path.join(build, "benchmarks", "kassette_bench")]),
        Program("limits", [limits(work)]),
    ]
    openblas = compile_if_older(
        os.path.join(work, "openblas"),
        [os.path.join(PEERS, "openblas", "bench.cpp")],
        ["-std=c++17", "-O2", "-ldl"],
        [timer],
    )
    found.append(Program("openblas-system", [openblas, "--library", "libopenblas.so.0"]))
    if wheel := package(folder, "openblas", "scipy_openblas32/lib/libscipy_openblas.so"):
        found.append(Program("openblas-wheel", [openblas, "--library", wheel]))
    for peer in ("torch", "mlx"):
        if flags := peer_flags(folder, peer):
            exe = compile_if_older(
                os.path.join(work, peer),
                sorted(glob.glob(os.path.join(PEERS, peer, "*.cpp"))),
                ["-O2", *flags[0], *flags[1]],
                [timer, os.path.join(PEERS, peer, "rows.h")],
            )
            found.append(Program(peer, [exe], env=stubs(folder) if peer == "torch" else None))
            if peer == "mlx":
                found.append(
                    Program("mlx-compiled", [exe, "--library", "compiled"], "small|train|chain10")
                )
    compiled = r"^(train|ew\.chain10|small\.add$)"
    for name, venv, script, options, rows in [
        ("torch-compile", "torch", "torch_compile_bench.py", [], compiled + "|^(ew|idx|nn|conv|pool)"),
        ("numpy", "numpy", "numpy_bench.py", [], ".*"),
        ("jax", "jax", "jax_bench.py", [], ".*"),
        ("tf-eager", "tf", "tf_bench.py", ["--mode", "eager"], ".*"),
        ("tf-fn", "tf", "tf_bench.py", ["--mode", "fn"], compiled + "|^(ew|idx|nn|conv|pool)"),
        ("tf-xla", "tf", "tf_bench.py", ["--mode", "xla"], compiled + "|^(conv|pool)"),
    ]:
        if folder and package(folder, venv, ""):
            python = os.path.join(folder, venv, "bin", "python")
            found.append(
                Program(
                    name,
                    [python, os.path.join(PEERS, script), *options],
                    rows,
                    stubs(folder) if venv == "torch" else None,
                )
            )
    return found
