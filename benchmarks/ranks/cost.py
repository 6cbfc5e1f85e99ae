#!/usr/bin/env python3
"""A model of the time that ranks spend in exchanges, and a simulation that holds it: the tables of docs/distributed.md.

    benchmarks/ranks/cost.py                              prints the tables
    benchmarks/ranks/cost.py --check docs/distributed.md  simulates, and compares with the page

A message of n bytes takes latency + n * seconds_per_byte; a rank sends one and receives one at a time. The algorithms and their
formulae are those of Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH" (2005).
"""
import math
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Network:
    name: str
    latency: float           # seconds
    seconds_per_byte: float


# Measured with `kassette_ranks collectives` on two ranks, see benchmarks/results/2026-11-23-ranks.md: 64 bytes
# give the latency, in which the comparison of calls is contained, 100 MB the time of a byte: between two cores of one machine, and over TCP
# on a loopback device of 2 Gbit/s for both directions together.
MEMORY = Network("0.76 us, 2.3 GB/s", 0.76e-6, 42.86e-3 / 1e8)
TCP = Network("12 us, 124 MB/s", 12.06e-6, 807.5e-3 / 1e8)
NETWORKS = (MEMORY, TCP)
RANKS = (2, 4, 16, 64, 256, 1024, 4096)

# The step of an MLP 784-512-512-10 with 128 rows a rank and one thread: 2.3 ms, two thirds of it the backward pass.
STEP, BACKWARD = 2.3e-3, 2 / 3
GRADIENT_BYTES = 4 * (784 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10)
BUCKET_BYTES = 1 << 20
FLOPS = 6 * (GRADIENT_BYTES // 4) * 128 / STEP   # a second, of one rank
# A softmax over CLASSES with FEATURES, BATCH examples.
CLASSES, FEATURES, BATCH = 200_000, 512, 256


def doubling(p, n, net):
    """Seconds of an all_reduce of n bytes by recursive doubling: every rank exchanges everything log2(p) times."""
    return math.ceil(math.log2(p)) * (net.latency + n * net.seconds_per_byte)


def halving(p, n, net):
    """By recursive halving, then doubling (Rabenseifner)."""
    return 2 * math.ceil(math.log2(p)) * net.latency + 2 * (p - 1) / p * n * net.seconds_per_byte


def ring(p, n, net):
    """Around a ring, in p parts."""
    return 2 * (p - 1) * (net.latency + n / p * net.seconds_per_byte)


def all_reduce(p, n, net):
    return min(doubling(p, n, net), halving(p, n, net))


def data_parallel(p, net):
    """Seconds of one step: the buckets are exchanged one after another, each once the backward pass has completed it."""
    buckets = math.ceil(GRADIENT_BYTES / BUCKET_BYTES)
    size = GRADIENT_BYTES / buckets
    exchange = all_reduce(p, size, net)
    forward, backward = STEP * (1 - BACKWARD), STEP * BACKWARD
    return forward + max(backward + exchange, backward / buckets + buckets * exchange)


def sharded_softmax(p, net):
    """Seconds of one step: each rank has its classes. Exchanged are a maximum, a sum and a score for each example, the adjoints of the last
    two, and the gradient of the features."""
    compute = 6 * BATCH * CLASSES * FEATURES / FLOPS / p
    return compute + 5 * all_reduce(p, 4 * BATCH, net) + all_reduce(p, 4 * BATCH * FEATURES, net)


# ---- the simulation: a clock for each rank, message by message

def exchange(clocks, partner_of, n, net):
    """Every rank sends n bytes to its partner and receives from the one whose partner it is."""
    p = len(clocks)
    arrived = [0.0] * p
    for r in range(p):
        to = partner_of(r)
        arrived[to] = max(clocks[to], clocks[r]) + net.latency + n * net.seconds_per_byte
    return arrived


def simulate_doubling(clocks, n, net):
    for k in range(len(clocks).bit_length() - 1):
        clocks = exchange(clocks, lambda r: r ^ (1 << k), n, net)
    return clocks


def simulate_halving(clocks, n, net):
    steps = len(clocks).bit_length() - 1
    for k in list(range(1, steps + 1)) + list(range(steps, 0, -1)):
        clocks = exchange(clocks, lambda r: r ^ (1 << (k - 1)), n / 2**k, net)
    return clocks


def simulate_ring(clocks, n, net):
    p = len(clocks)
    for _ in range(2 * (p - 1)):
        clocks = exchange(clocks, lambda r: (r + 1) % p, n / p, net)
    return clocks


def simulate_all_reduce(clocks, n, net):
    p = len(clocks)
    return (simulate_doubling if doubling(p, n, net) <= halving(p, n, net) else simulate_halving)(clocks, n, net)


def simulate_step(p, net):
    buckets = math.ceil(GRADIENT_BYTES / BUCKET_BYTES)
    computed = free = [STEP * (1 - BACKWARD)] * p
    for _ in range(buckets):
        computed = [c + STEP * BACKWARD / buckets for c in computed]
        begin = [max(c, f) for c, f in zip(computed, free)]
        free = simulate_all_reduce(begin, GRADIENT_BYTES / buckets, net)
    return max(max(free), max(computed))


def check_simulation():
    def close(what, got, expected):
        if abs(got - expected) > 0.01 * expected:
            sys.exit(f"{what}: simulated {got:.4g} s, the formula gives {expected:.4g} s")

    for net in NETWORKS:
        for p in RANKS:
            for n in (64, 100_000, 10_000_000):
                for formula, simulate in ((doubling, simulate_doubling), (halving, simulate_halving)):
                    close(f"{formula.__name__}, {p} ranks, {n} bytes", max(simulate([0.0] * p, n, net)), formula(p, n, net))
                if p <= 64:
                    close(f"ring, {p} ranks, {n} bytes", max(simulate_ring([0.0] * p, n, net)), ring(p, n, net))
            close(f"step, {p} ranks", simulate_step(p, net), data_parallel(p, net))


def tables():
    lines = ["| ranks | " + " | ".join(f"data parallel, {n.name}" for n in NETWORKS) + " | " +
             " | ".join(f"sharded softmax, {n.name}" for n in NETWORKS) + " |", "|---" * (1 + 2 * len(NETWORKS)) + "|"]
    for p in RANKS:
        kept = [f"{STEP / data_parallel(p, net):.2f}" for net in NETWORKS]
        faster = [f"{6 * BATCH * CLASSES * FEATURES / FLOPS / sharded_softmax(p, net):.0f}" for net in NETWORKS]
        lines.append("| " + " | ".join([f"{p:,}"] + kept + faster) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--check":
        check_simulation()
        if tables() not in open(sys.argv[2], encoding="utf-8").read():
            sys.exit(f"{sys.argv[2]} does not hold this table:\n{tables()}")
    else:
        print(tables())
