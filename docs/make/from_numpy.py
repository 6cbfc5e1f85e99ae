#!/usr/bin/env python3
"""docs/make/from_numpy.py SOURCE [--check] - writes docs/from_numpy.md: NumPy's names, and what kassette has for each.

The names, what to write instead and remarks are in numpy_names.tsv; whether np has a function is read from its headers. --check
compares instead of writing.
"""
import pathlib
import re
import sys

sys.dont_write_bytecode = True
import headers

HEAD = """# From NumPy to kassette

`#include <kassette/numpy.h>`, `namespace np = kassette::numpy;`: most of NumPy under the same names. What is different everywhere:

- **Tensors never change.** `x[i] = v` is `x = x.at(i).set(v)`; `x += 1` makes `x` another tensor. Nothing is a view of something that changes.
- **Arguments by name** stand in braces behind the first ones: `np.sum(x, axis=0, keepdims=True)` is `np::sum(x, {.axis = 0, .keepdims = true})`, and
  `np::sum(x, 0)` will do for the axis alone. Tuples and lists are braces too: `np::transpose(x, {1, 0, 2})`.
- **Numbers and lists of numbers** are float32 (`K::set_floatx` changes that) unless a tensor that they are combined with says otherwise; a
  `std::vector<double>` is float64, as are arrays of Eigen and xtensor with doubles.
- **Dtypes of one kind are promoted**, as in NumPy; of two kinds (float and integer, integer and bool) they are an error that says cast.
  There are bool, integers of 8 to 64 bits, float16, bfloat16, float32 and float64; no strings or objects, and complex numbers only as the pairs of tensors that
  `np::fft` takes and gives.
- **Indices** are in parentheses: `x[1, :, ::2]` is `x(1, all, slice(None, None, 2))` or `x["1, :, ::2"]`.
- **Everything has a gradient** where there is one, runs in `K::function`, and on CUDA.

"""


def main():
    source = pathlib.Path(sys.argv[1]).resolve()
    there = {e.name: h.name for h in headers.read_headers(source) if h.name.startswith("numpy_") for e in h.functions}
    rows = [line.split("\t") for line in pathlib.Path(__file__).with_name("numpy_names.tsv").read_text().splitlines()[1:]]
    out, found = [HEAD], 0
    for group in dict.fromkeys(row[0] for row in rows):
        out += [f"## {group}", "", "| NumPy | kassette | remark |", "|---|---|---|"]
        for _, name, instead, remark in (row for row in rows if row[0] == group):
            plain = name.split(".")[-1]
            has = plain in there and ("." not in name or name.split(".")[0] in there[plain])
            shown = f"`np::{name.replace('.', '::')}`" if has else instead or "-"
            found += shown != "-"
            out.append(f"| `{name}` | {shown} | {remark} |")
        out.append("")
    out.insert(1, f"{found} of {len(rows)} names below have something here; a dash means not yet.\n")
    text = "\n".join(out)
    page = source / "docs/from_numpy.md"
    if "--check" in sys.argv:
        if not page.exists() or page.read_text() != text:
            sys.exit("docs/from_numpy.md is out of date: run docs/make/from_numpy.py")
    else:
        page.write_text(text)
        print(f"{found} of {len(rows)}")


main()
