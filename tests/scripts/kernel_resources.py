# tests/scripts/kernel_resources.py TABLE RELEASE [--write] - reads what `cuobjdump --dump-resource-usage | c++filt` prints; see kernel_resources.sh.
import re
import sys

table, release, mode = sys.argv[1], sys.argv[2], (sys.argv + [""])[3]
THREADS, REGISTERS, SHARED, MOST = 256, 65536, 227 * 1024, 2048  # of a block of ours; of a multiprocessor of sm_90


def resident(registers, shared):
    """Threads of a multiprocessor that registers and shared memory leave room for."""
    for_warp = (registers * 32 + 255) // 256 * 256
    blocks = min(REGISTERS // for_warp // (THREADS // 32), SHARED // (shared + 1024))
    return min(MOST, blocks * THREADS)


def short(name):
    """Without namespaces and arguments."""
    name = re.sub(r"kassette::|ops::|cuda::|_GLOBAL__N__\w+::|\(anonymous namespace\)::|<unnamed>::", "", name).replace("void ", "")
    depth = 0
    for i, c in enumerate(name):
        depth += (c == "<") - (c == ">")
        if c == "(" and depth == 0:
            return name[:i]
    return name


# Arrays that are indexed at run time: 2 / pi to many digits for large angles, and the values
# that a chain keeps for later opcodes. Losses of float64: two to four words that are read once for each pass.
ARRAYS = re.compile(r"Each<(Sin|Cos|Tan|Sinc|Lgamma|Polygamma)(, |>)|interpret<|Rejection<|"
                    r"^run_(columns|strided)<.*(CrossEntropy|ProbabilityGrad)<double>")

arch, name, kernels = "", "", {}
for line in sys.stdin:
    if found := re.match(r"arch = (\w+)", line):
        arch = found[1]
    elif found := re.match(r"\s*Function (.*):$", line):
        name = short(found[1])
    elif (found := re.match(r"\s*REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)", line)) and arch == "sm_90":
        here = tuple(int(found[i]) for i in (1, 2, 3, 4))
        kernels[name] = tuple(map(max, here, kernels.get(name, here)))  # names may meet: files have structures of their own
if not kernels:
    sys.exit("kernel_resources: no kernels for sm_90")

head = f"# Kernels for sm_90 as nvcc {release} makes them: tests/scripts/kernel_resources.sh BUILD --write\n"
head += "kernel\tregisters\tstack\tshared\tthreads of a multiprocessor\n"
rows = [f"{k}\t{r}\t{s + l}\t{m}\t{resident(r, m)}\n" for k, (r, s, m, l) in sorted(kernels.items())]
if mode == "--write":
    open(table, "w").writelines([head] + rows)
wrong = [f"{k} has a stack of {s + l} bytes" for k, (r, s, m, l) in sorted(kernels.items()) if s + l and not ARRAYS.search(k)]
written = open(table).readlines()
if written[0] == head.splitlines(True)[0]:
    wrong += ["not in the table: " + row.strip() for row in sorted(set(rows) - set(written[2:]))]
    wrong += ["in the table only: " + row.strip() for row in sorted(set(written[2:]) - set(rows))]
for line in wrong[:40]:
    print(line)
few = min(resident(r, m) for r, s, m, l in kernels.values())
print(f"kernel_resources: {len(kernels)} kernels, {len(wrong)} findings, at most {max(k[0] for k in kernels.values())} registers, at least {few} threads")
sys.exit(1 if wrong else 0)
