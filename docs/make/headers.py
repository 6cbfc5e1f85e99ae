"""docs/make/headers.py - reads the functions of K, and what is written above them, from the public headers nn_backend/*.h.

The format, which `help` in the REPL reads as well:
- lines of `///` right above a declaration are its comment; declarations that follow without a blank line or a comment of their
  own share it;
- lines of `//` between blank lines are remarks on the whole header;
- everything stands at the left margin; a class ends with a line `};`.
Its example is not here but in docs/api/<header>.md, below the heading of its name.
"""
import re


class Function:
    def __init__(self, name, comment):
        self.name, self.comment, self.signatures = name, comment, []


class Type:
    def __init__(self, name, comment, code):
        self.name, self.comment, self.code = name, comment, code


class Header:
    def __init__(self, name):
        self.name, self.title, self.remarks, self.functions, self.types = name, "", [], [], []


def signature_of(declaration):
    text = re.sub(r"\s+", " ", declaration)
    text = re.sub(r"\)( const)? \{.*$|;$", lambda m: ")" if m[0][0] == ")" else "", text)
    return re.sub(r"KASSETTE_API |\[\[nodiscard\]\] |inline ", "", text).strip()


def add_function(header, declaration, comment):
    signature = signature_of(declaration)
    match = re.match(r"(?:template <[^>]*> )?[^=(]*[ &>]([a-z][a-z_0-9]*)\(", signature)
    if not match:
        return
    found = next((f for f in header.functions if f.name == match[1]), None)
    if not found:
        found = Function(match[1], "")
        header.functions.append(found)
    if comment and comment not in found.comment:
        found.comment += ("\n\n" if found.comment else "") + comment
    found.signatures.append(signature)


def read_header(path):
    """The header's functions in namespace backend and its documented types; None where it is no public header."""
    lines = path.read_text().splitlines()
    if "#pragma once" in lines:
        return None
    header = Header(path.stem)
    header.title = re.sub(r"^// \S+ - (.*?)( \(spec.*)?\.?$", r"\1", lines[0])
    scopes, comment, remark, code, declaration = [], [], [], None, ""
    fresh = True   # whether the next /// begins another comment
    for line in lines[1:]:
        if code is not None:
            code.append(line)
            if line == "};":
                if header.types and header.types[-1].code is None:
                    header.types[-1].code = "\n".join(code)
                code = None
        elif declaration or (line and not re.match(r"//|#|namespace |\}|using |class |struct |template <class R", line)):
            declaration += " " + line.strip()
            balanced = declaration.count("{") == declaration.count("}") and declaration.count("(") == declaration.count(")")
            if balanced and declaration[-1] in ";}":
                if "backend" in scopes and "detail" not in scopes:
                    add_function(header, declaration.strip(), "\n".join(comment))
                declaration = ""
        elif line.startswith("///"):
            comment = [*([] if fresh else comment), line[4:]]
            fresh = False
            continue
        elif line.startswith("//"):
            remark.append(line[3:])
        elif scope := re.match(r"namespace (\w+) \{", line):
            scopes.append(scope[1])
        elif line.startswith("}  // namespace"):
            scopes.pop()
        elif kind := re.match(r"(?:class|struct) (?:KASSETTE_API )?(\w+)(.*)", line):
            if not kind[2].strip().startswith(";"):
                if comment and "detail" not in scopes and not fresh:
                    header.types.append(Type(kind[1], "\n".join(comment), None))
                code = [line]
                if line.endswith("};"):
                    code = None
            comment = []
        elif not line:
            if remark and not comment:
                header.remarks.append(" ".join(remark).strip())
            remark, comment = [], []
        if line.startswith("using "):
            comment = []
        fresh = True
    return header


def read_headers(source):
    """All public headers of K that declare functions."""
    found = [read_header(path) for path in sorted((source / "nn_backend").glob("*.h"))]
    return [header for header in found if header and header.functions]
