"""engine_size.py SOURCE - the engine's size: its tokens, and its functions that are long or take many parameters."""
import glob, os, re, sys

# The engine: what runs and differentiates ops, and what a tensor and a node of the tape are made of.
FILES = ["autograd/*/*.h", "autograd/*/*.cpp", "ops/engine/*.h", "ops/engine/*.cpp", "ops/product/matmul.h", "ops/product/matmul.cpp",
         "ops/elementwise/chain.h", "ops/elementwise/chain_simd.cpp", "ops/elementwise/device_chain*.h", "ops/elementwise/device_chain.cpp",
         "core/attrs.h", "core/context.*", "core/impl.*", "core/ref.h", "core/storage.*"]
# A limit one per cent above what there was when all of it was counted first, 106,346 tokens; lower it when something goes.
MOST_TOKENS, MOST_LINES, MOST_PARAMETERS = 108000, 60, 6

# A string or a character is one token; comments are none.
PIECE = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'|[A-Za-z_]\w*|\d(?:[\w.]|'\d)*"""
                   r"""|->|::|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\S|\n""", re.S)


# What is no declaration to functions().
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.M)
ATTRIBUTE = re.compile(r"__attribute__\(\(.*?\)\)")


def tokens_of(text):
    """[(token, line)]"""
    line, found = 1, []
    for piece in PIECE.findall(text):
        if not piece.startswith(("//", "/*", "\n")):
            found.append((piece, line))
        line += piece.count("\n")
    return found


def parameters(tokens):
    """How many parameters stand in the first brackets of a declarator: commas outside of further brackets."""
    depth, angles, commas, any_ = 0, 0, 0, False
    for token in tokens[tokens.index("("):]:
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
            if depth == 0:
                break
        elif depth == 1 and token in ("<", ">", ">>"):
            angles += {"<": 1, ">": -1, ">>": -2}[token]
        elif depth == 1 and angles == 0 and token == ",":
            commas += 1
        any_ = any_ or (depth > 0 and token not in ("(", "void"))
    return commas + any_


def functions(tokens):
    """(name, first line, lines, parameters) of each function that has its body here."""
    head, inside = [], 0   # the tokens since the last declaration; how many open braces belong to a body
    for token, line in tokens:
        if inside:
            inside += {"{": 1, "}": -1}.get(token, 0)
            if inside == 0 and begun:
                words = [t for t, _ in begun]
                yield words[words.index("(") - 1], begun[0][1], line - begun[0][1] + 1, parameters(words)
        elif token == "{":
            words = [t for t, _ in head]
            scope = {"namespace", "class", "struct", "enum", "union"} & set(words) and "(" not in words
            if scope:
                head = []
                continue
            # An initialiser of a member in a constructor's list is followed by more; its braces are skipped as a body without a name.
            body = "(" in words and "=" not in words[:words.index("(")]
            begun, inside = (head if body else None), 1
            head = []
        elif token in (";", "}"):
            head = []
        else:
            if token == ":" and len(head) == 1 and head[0][0] in ("public", "private", "protected"):
                head = []
                continue
            head.append((token, line))


def main(source):
    os.chdir(source)
    total, bad = 0, 0
    for path in sorted(p for pattern in FILES for p in glob.glob(pattern)):
        tokens = tokens_of(open(path).read())
        total += len(tokens)
        code = tokens_of(DIRECTIVE.sub("", ATTRIBUTE.sub("", open(path).read())))
        for name, line, lines, n in functions(code):
            if lines > MOST_LINES or n > MOST_PARAMETERS:
                bad += 1
                print(f"{path}:{line}: {name} has {lines} lines and {n} parameters; at most {MOST_LINES} and {MOST_PARAMETERS}")
    print(f"{total} tokens in the engine, at most {MOST_TOKENS}")
    return 1 if bad or total > MOST_TOKENS else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
