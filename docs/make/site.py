#!/usr/bin/env python3
"""docs/make/site.py SOURCE OUT [--pages] - builds the documentation as static HTML with search into OUT/html, by mkdocs.

The pages of docs/ go in as they are; the pages reference/<header>.md are made here, from the comments in the public headers and the
examples in docs/api. --pages stops before mkdocs.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import headers
import markdown

GUIDE = ["first_steps", "installation", "examples", "features", "from_keras", "from_numpy", "from_pytorch", "python", "gradients", "memory", "distributed", "repl", "notebook", "debugging", "testing",
         "files", "errors", "pitfalls", "performance", "threads", "sparse", "backends", "environment", "security", "parity"]
CONTRIBUTORS = ["architecture", "architecture/extending", "architecture/debugging", "architecture/testing",
                "architecture/products", "architecture/cuda_traffic", "architecture/notes"]
# Pages at the root of the repository, which the others link to.
ROOT = ["CONTRIBUTING", "CHANGELOG", "SECURITY"]
# The order in which a reader meets them.
FAMILIES = ["creation", "state", "introspection", "elementwise", "comparison", "reductions", "linalg", "shaping", "sparse", "activations",
            "softmax", "losses", "normalization", "convolution", "padding", "random", "graph", "control", "rnn", "ctc", "config"]
NUMPY = ["numpy", "numpy_creation", "numpy_mathematics", "numpy_reductions", "numpy_nan_reductions", "numpy_running", "numpy_shaping", "numpy_selection", "numpy_placement", "numpy_indices", "numpy_calculus", "numpy_order", "numpy_sets", "numpy_statistics", "numpy_products", "numpy_polynomials", "numpy_dtypes", "numpy_linalg", "numpy_fft", "numpy_random"]
NN = ["nn", "nn_activations", "nn_losses", "nn_normalization", "nn_attention", "nn_convolution"]
LIBRARY = ["tensor", "containers", "shape", "dtype", "device", "stream", "print", "error", "runtime", "distributed", "interrupt", "transforms", "optimize", "integrate", "inspect", "profile", "testing", "io", "borrow", "dlpack", "xtensor",
           "external_backend", "api", "kept", "kept_operand", "repl", "display", "show_config", "version"]


def prose(comment):
    """A comment as Markdown: what looks like markup is text, unless it stands in backticks or is code, which is indented."""
    code = re.search(r"(?m)(?:^    .*\n?)+", comment)
    if code:
        return f"{prose(comment[:code.start()])}\n\n{code[0]}\n{prose(comment[code.end():])}".strip("\n")
    parts = re.split(r"(`[^`]*`)", comment)
    parts[::2] = [re.sub(r"([*\\|_#\[\]])", r"\\\1", p).replace("<", "&lt;").replace(">", "&gt;") for p in parts[::2]]
    return re.sub(r"(?m)^(\d+)\.( |$)|^([-+])( |$)", lambda m: (m[1] or "") + "\\" + (m[3] or ".") + " ", "".join(parts)).strip()


def wrapped(signature):
    """A declaration, broken behind a comma where it is long."""
    indent = signature.index("(") + 1 if signature.index("(") < 40 else 4
    lines = [""]
    for part in re.split(r"(?<=,) ", signature):
        if lines[-1] and len(lines[-1]) + 1 + len(part) > 96:
            lines.append(" " * indent + part)
        else:
            lines[-1] += (" " if lines[-1] else "") + part
    return "\n".join(lines)


def index_of(source, found):
    """Number, function, group, Keras' signature, note: the lines of tests/data/parity.tsv, then the functions that are not in it."""
    lines = [line.split("\t") for line in (source / "tests/data/parity.tsv").read_text().splitlines()[1:]]
    listed = {line[1] for line in lines}
    return lines + [["-", f.name, "Beside the index", "", ""] for header in found for f in header.functions
                    if f.in_backend() and f.name.rstrip("_") not in listed]


def keras_line(name, index):
    for number, function, _, keras, note in index:
        if name.rstrip("_") == function:
            note = note.removeprefix("signature: ")
            if number == "-":
                return f"Beside Keras' functions: {prose(note)}." if note else ""
            return f"Keras: `{keras}`" + (f"; here {prose(note)}." if note else "")
    return ""


def reached(source):
    """The headers that <kassette/backend.h> includes, directly or not."""
    found, waiting = set(), ["backend.h"]
    while waiting:
        name = waiting.pop()
        path = next((source / folder / name for folder in ("include/kassette", "include/kassette/backend") if (source / folder / name).exists()))
        for included in re.findall(r"#include <kassette/(?:backend/)?(\w+\.h)>", path.read_text()):
            if included not in found:
                found.add(included)
                waiting.append(included)
    return found


# What a parameter of a type takes.
TAKES = {"Operand": "a tensor, a number, a nested list or a `std::vector`", "KeptOperand": "a tensor, a number, a nested list or a `std::vector`", "Tensor": "a tensor", "Tensors": "a list of tensors",
         "Axes": "an axis, a list of axes, or `None`", "Name": "a text", "DType": "a dtype such as `\"float32\"`, or `None` where that is the default",
         "Dims": "an integer or a list of integers", "Array": "a tensor, a nested list, a `std::vector` or an array of another library",
         "bool": "`true` or `false`", "int": "an integer", "std::int64_t": "an integer", "double": "a number", "Scalar": "a number",
         "Updates": "pairs of a variable and its new value", "Branch": "a tensor, or a callable that returns one"}


def arguments(entry):
    """The parameters of a function of K, one by one; of overloads, those of the longest."""
    signature = max(entry.signatures, key=len)
    inside, parts, depth = signature[signature.index("(") + 1:signature.rindex(")")], [""], 0
    for c in inside:
        depth += (c in "(<{[") - (c in ")>}]")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    rows = []
    for part in parts:
        found = re.fullmatch(r"\s*(?:const )?(.+?)\s*&{0,2}\s*(\w+)(?: = (.+))?", part.strip(), re.S)
        if found:
            kind, name, default = found.groups()
            rows.append(f"| `{name}` | {TAKES.get(kind, f'`{kind}`')} | " + (f"`{default}` |" if default else "required |"))
    return ["| argument | takes | default |", "|---|---|---|", *rows, ""] if rows else []


def declaration(entry):
    """What the reference shows of a declaration: of a class what is public."""
    if entry.kind == "function":
        return "\n".join(map(wrapped, entry.signatures))
    text = re.sub(r"(?ms)^ (?:private|protected):.*?(?=^ public:|^\};)", "", entry.code)
    text = re.sub(r"KASSETTE_API |\binline (?=constexpr)", "", text)
    return "\n".join(line for line in text.splitlines() if not re.match(r"\s*friend struct \w*Access;", line))


def reference_page(header, page, index, includes):
    sections = markdown.sections(page)
    out = [f"# {next(s.title for s in sections if s.level == 1)}", ""]
    if header.family:
        out += [f"`#include <kassette/backend.h>`, declared in `<kassette/backend/{header.name}.h>`", ""]
    elif space := next((s for s, prefix in headers.PREFIXES.items() if header.name.startswith(prefix)), None):
        out += [f"`#include <kassette/{space}.h>`, declared in `<kassette/{space}/{header.path.name}>`", ""]
    else:
        out += [f"`#include <kassette/{header.name}.h>`" + (", which `<kassette/backend.h>` includes" if f"{header.name}.h" in includes else ""), ""]
    out += [prose(remark) + "\n" for remark in header.remarks]
    for entry in markdown.entries(sections):
        declared = [e for name in entry.names for e in header.entries if e.name == name and (not e.forward or e.comment)]
        out += [*(f'<a id="{name.lower()}"></a>' for name in entry.names if len(entry.names) > 1), "", f"## {', '.join(entry.names)}", ""]
        out += ["```cpp", *dict.fromkeys(map(declaration, declared)), "```", "", *(prose(c) + "\n" for c in dict.fromkeys(e.comment for e in declared)), ""]
        functions = [e for e in declared if e.kind == "function" and e.in_backend()]
        if functions and len(entry.names) == 1:
            out += arguments(functions[0])
        for section in entry.sections:
            if section.level > 2:
                out += ["#" * section.level + " " + section.title, ""]
            for part in section.parts:
                out += [f"```{part.language}", *part.lines, "```"] if isinstance(part, markdown.Block) else [part]
        if header.family:
            out += ["", keras_line(entry.names[0], index), ""]
    return "\n".join(out) + "\n"


def reference_index(found, index, titles):
    where = {f.name: header.name for header in found for f in header.entries if f.in_backend()}
    out = ["# All names", "", "The functions of Keras 2.3, in its groups, and what kassette adds. Each leads to its explanation and example.", ""]
    groups = dict.fromkeys(line[2] for line in index)
    for group in groups:
        names = [line[1] if line[1] != "switch" else "switch_" for line in index if line[2] == group]
        there = [f"[`{n}`]({where[n]}.md#{n})" for n in names if n in where]
        missing = [f"`{n}`" for n in names if n not in where]
        out += [f"**{group}.** " + " ".join(there) + (f" Not yet: {' '.join(missing)}" if missing else ""), ""]
    out += ["## The library", "", "Classes, options and functions in `namespace kassette`, by header.", ""]
    listed = {line[1].rstrip("_") for line in index}
    for header in found:
        names = [n for n in titles[header.name][1] if not header.family or n.rstrip("_") not in listed]
        if names:
            out += [f"**{titles[header.name][0]}.** " + " ".join(f"[`{n}`]({header.name}.md#{n.lower()})" for n in names), ""]
    return "\n".join(out)


def title_of(page):
    return next(s.title for s in markdown.sections(page.read_text()) if s.level == 1)


def finish(site):
    """The search index as a script, and what a block printed told from code."""
    documents = json.loads((site / "search/search_index.json").read_text())["docs"]
    for d in documents:
        # mkdocs lists each page whole, and its sections once more.
        text = d["text"] if "#" in d["location"] else ""
        d["text"] = re.sub(r" (?=[),;\]}]|::)|(?<=[(\[{]) |(?<=::) |(?<=\w) (?=&)", "", text)
    # What readers ask for under other names: a word, and the words that the pages have for it.
    rows = (pathlib.Path(__file__).parent / "synonyms.tsv").read_text().splitlines()
    synonyms = {word: found.split() for word, found in (row.split("\t") for row in rows)}
    (site / "search/documents.js").write_text(f"var documents = {json.dumps(documents)};\nvar synonyms = {json.dumps(synonyms)};\n")
    for page in site.rglob("*.html"):
        # codehilite writes both the same way, but colours nothing in text.
        text = re.sub(r'<div class="codehilite">(<pre><span></span><code>(?:(?!<span|</code>).)*</code></pre>)', r'<div class="codehilite output">\1',
                      page.read_text(), flags=re.S)
        page.write_text(text)


def main():
    source, out = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
    pages, site = out / "pages", out / "html"
    shutil.rmtree(pages, ignore_errors=True)
    (pages / "reference").mkdir(parents=True)
    (pages / "architecture").mkdir()
    shutil.copytree(source / "docs/pictures", pages / "pictures")
    for name in ["index", *GUIDE, *CONTRIBUTORS]:
        text = (source / f"docs/{name}.md").read_text()
        (pages / f"{name}.md").write_text(re.sub(rf"\]\(((?:\.\./)*)\.\./({'|'.join(ROOT)})\.md", r"](\1\2.md", text))
    for name in ROOT:
        text = (source / f"{name}.md").read_text()
        (pages / f"{name}.md").write_text(text.replace("](docs/README.md)", "](reference/index.md)").replace("](docs/", "]("))
    found = headers.read_headers(source)
    index = index_of(source, found)
    found = [header for header in found if (source / "docs/api" / header.page).exists()]
    examples = {header.name: (source / "docs/api" / header.page).read_text() for header in found}
    includes = reached(source)
    for header in found:
        (pages / f"reference/{header.name}.md").write_text(reference_page(header, examples[header.name], index, includes))
    shown = {name: markdown.sections(page) for name, page in examples.items()}
    listed = {name: (s[1].title, [n for entry in markdown.entries(s) for n in entry.names]) for name, s in shown.items()}
    (pages / "reference/index.md").write_text(reference_index(found, index, listed))

    def in_order(names, order):
        return sorted(names, key=lambda n: order.index(n) if n in order else len(order))
    families = in_order((h.name for h in found if h.family), FAMILIES)
    arrays = in_order((h.name for h in found if h.name.startswith("numpy")), NUMPY)
    networks = in_order((h.name for h in found if h.name == "nn" or h.name.startswith("nn_")), NN)
    library = in_order((h.name for h in found if not h.family and h.name not in arrays + networks), LIBRARY)
    titles = {"parity": "Parity with Keras"}
    nav = [{"kassette": "index.md"}, {"Guide": [{titles.get(n) or title_of(pages / f"{n}.md"): f"{n}.md"} for n in GUIDE]},
           {"Functions of K": [{"All names": "reference/index.md"}, *({title_of(pages / f"reference/{n}.md"): f"reference/{n}.md"} for n in families)]},
           {"Functions of np": [{title_of(pages / f"reference/{n}.md"): f"reference/{n}.md"} for n in arrays]},
           {"Functions of nn": [{title_of(pages / f"reference/{n}.md"): f"reference/{n}.md"} for n in networks]},
           {"The library": [{title_of(pages / f"reference/{n}.md"): f"reference/{n}.md"} for n in library]},
           {"For contributors": [{title_of(pages / f"{n}.md"): f"{n}.md"} for n in [*CONTRIBUTORS, *ROOT]]}]
    config = {"site_name": "kassette", "docs_dir": str(pages), "site_dir": str(site), "nav": nav,
              # A theme of our own: Debian's mkdocs has lost files that its readthedocs theme names.
              "theme": {"name": None, "custom_dir": str(source / "docs/make/theme")},
              "use_directory_urls": False, "site_url": "",   # so that it can be read from the disk
              "plugins": ["search"],
              "markdown_extensions": ["tables", "fenced_code", {"codehilite": {"guess_lang": False}}, {"toc": {"permalink": "#"}}]}
    (out / "mkdocs.yml").write_text(json.dumps(config, indent=1))   # YAML holds JSON
    if "--pages" not in sys.argv:
        subprocess.run(["mkdocs", "build", "--clean", "--strict", "--quiet", "--config-file", str(out / "mkdocs.yml")], check=True)
        finish(site)


main()
