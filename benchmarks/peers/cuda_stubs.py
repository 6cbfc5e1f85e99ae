#!/usr/bin/env python3
"""Stand-ins for the CUDA libraries that a CUDA build of PyTorch is linked with.

    cuda_stubs.py TORCH_LIB_DIR OUT_DIR

The loader wants each library by soname, with the version nodes and the functions that torch refers
to; on the CPU none of them is called. Each stand-in defines exactly those functions, all returning
0. Put OUT_DIR in LD_LIBRARY_PATH.
"""

import collections
import pathlib
import re
import subprocess
import sys

# Libraries without version nodes: which undefined names are theirs. The longer prefix wins:
# cublasLt before cublas.
PREFIXES = {
    "libcudart": ["cuda", "__cuda"],
    "libcupti": ["cupti"],
    "libcufile": ["cuFile"],
    "libcusparseLt": ["cusparseLt"],
    "libcusparse": ["cusparse"],
    "libcublasLt": ["cublasLt"],
    "libcublas": ["cublas"],
    "libcufft": ["cufft"],
    "libcudnn": ["cudnn"],
    "libnvrtc": ["nvrtc"],
    "libnvshmem_host": ["nvshmem"],
    "libcusolver": ["cusolver"],
    "libcurand": ["curand"],
    "libnvJitLink": ["nvJitLink"],
    "libnccl": ["nccl", "pnccl"],
}


def lines(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()


def owner(name):
    """Stem of the library that a function without a version belongs to, or None."""
    fits = [
        (len(p), stem)
        for stem, prefixes in PREFIXES.items()
        for p in prefixes
        if name.startswith(p)
    ]
    return max(fits)[1] if fits else None


def survey(folder):
    """(sonames needed, {version node: soname}, {(name, version)} undefined) over the folder."""
    needed, node_of, undefined = set(), {}, set()
    for library in map(str, folder.glob("*.so*")):
        for line in lines("readelf", "--dynamic", "--wide", library):
            found = re.search(r"NEEDED.*\[(.+)\]", line)
            if found and found[1].split(".so")[0] in PREFIXES:
                needed.add(found[1])
        file = None
        for line in lines("readelf", "--version-info", "--wide", library):
            if found := re.search(r"File: (\S+)", line):
                file = found[1]
            elif found := re.search(r"Name: (\S+)\s+Flags", line):
                node_of[found[1]] = file
        for line in lines("nm", "--dynamic", "--undefined-only", library):
            name, _, version = line.split()[-1].partition("@")
            undefined.add((name, version.lstrip("@")))
    return needed, node_of, undefined


def write(soname, functions, nodes, out):
    """functions: {version or '': names}. Compiles out/soname."""
    names = sorted({n for group in functions.values() for n in group})
    source, script = out / "stub.c", out / "stub.map"
    source.write_text(
        "".join(f"int {n}(void) {{ return 0; }}\n" for n in names)
        or "int nothing_needed(void) { return 0; }\n"
    )
    script.write_text(
        "".join(
            f"{node} {{ global: {' '.join(n + ';' for n in functions[node]) or '*;'} }};\n"
            for node in nodes
        )
    )
    versions = [f"-Wl,--version-script={script}"] if nodes else []
    subprocess.run(
        [
            "gcc",
            "-shared",
            "-fPIC",
            "-w",
            "-fno-builtin",
            source,
            "-o",
            out / soname,
            f"-Wl,-soname,{soname}",
            *versions,
        ],
        check=True,
    )
    source.unlink()
    script.unlink()
    print(f"{soname}: {len(names)} functions")


def main():
    folder, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    needed, node_of, undefined = survey(folder)
    for soname in sorted(needed):
        functions = collections.defaultdict(list)
        for name, version in sorted(undefined):
            if version:
                mine = node_of.get(version) == soname
            else:
                mine = owner(name) == soname.split(".so")[0]
            if mine:
                functions[version].append(name)
        write(soname, functions, [n for n, file in node_of.items() if file == soname], out)


main()
