"""Fails where two files of the library define a class or an enum of one qualified name: the linker keeps one of both, which breaks the
one-definition rule. Names in anonymous namespaces and inside functions do not count.

usage: duplicate_names.py SOURCE_DIR
"""
import pathlib
import re
import sys
from collections import defaultdict

FOLDERS = ("include", "core", "devices", "ops", "autograd", "nn_backend")
# Comments, preprocessor lines and literals match first, and are dropped.
TOKENS = re.compile(
    r'//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n\\]|\\.)*|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|([A-Za-z_]\w*|::|[^\s\w])', re.S | re.M)


def definitions(text):
    """The qualified names of classes and enums that the text defines at the scope of a namespace or a class."""
    scopes, statement, found = [], [], []
    for token in (m.group(2) for m in TOKENS.finditer(text) if m.group(2)):
        if token == "{":
            kind, name = scope_of(statement)
            if kind in ("class", "enum") and name and all(k in ("namespace", "class") and n for k, n in scopes):
                found.append("::".join([n for _, n in scopes] + [name]))
            scopes.append((kind, name))
            statement = []
        elif token in ("}", ";"):
            if token == "}" and scopes:
                scopes.pop()
            statement = []
        else:
            statement.append(token)
    return found


def scope_of(statement):
    """The kind of scope that a brace after these tokens opens, "namespace", "class", "enum" or "other", and its name, empty if it has none."""
    while statement[:1] == ["template"]:
        depth, end = 0, 1
        while end < len(statement):
            depth += {"<": 1, ">": -1}.get(statement[end], 0)
            end += 1
            if depth == 0:
                break
        statement = statement[end:]
    if "namespace" in statement[:2]:
        return "namespace", "".join(statement[statement.index("namespace") + 1:])
    if statement[:1] == ["extern"]:
        return "namespace", "C"
    if statement and statement[0] in ("class", "struct", "union", "enum") and "(" not in statement:
        words = [t for t in statement[1:] if t not in ("class", "struct", "final") and not t.startswith("KASSETTE_")]
        return "enum" if statement[0] == "enum" else "class", "".join(words[:words.index(":")] if ":" in words else words)
    return "other", ""


def main(root):
    where = defaultdict(set)
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".cu", ".cuh"):
                for name in definitions(path.read_text(encoding="utf-8")):
                    where[name].add(str(path.relative_to(root)))
    twice = {name: files for name, files in where.items() if len(files) > 1}
    for name, files in sorted(twice.items()):
        print(f"{name} is defined in {' and in '.join(sorted(files))}")
    print(f"{len(where)} classes and enums, {len(twice)} of them defined twice")
    return 1 if twice or len(where) < 300 else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
