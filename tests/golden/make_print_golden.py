#!/usr/bin/env python3
"""Writes print.txt: arrays and the text that NumPy prints for them.

    python3 tests/golden/make_print_golden.py [cases] [seed] >tests/golden/print.txt

NumPy 2.3 or later: since then float32 turns to scientific notation at 1e6. A case is

    float64 (2, 3) precision=3
    3fb999999999999a …              # the elements' bits, in hexadecimal; repeated until the shape is full
    [[0.1 …                         # what NumPy prints
                                    # an empty line
"""
import sys

import numpy as np

if tuple(map(int, np.__version__.split(".")[:2])) < (2, 3):
    sys.exit(f"NumPy 2.3 or later is needed; this is {np.__version__}")

count = int(sys.argv[1]) if len(sys.argv) > 1 else 400
rng = np.random.default_rng(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
f32, f64 = np.float32, np.float64


def write(shape, values, **options):
    """One case: str(x), or with options np.array2string, which has other names for two of them."""
    values = np.atleast_1d(np.asarray(values)).ravel()
    bits = values.view({1: np.uint8, 4: np.uint32, 8: np.uint64}[values.itemsize])
    x = np.resize(values, shape) if np.prod(shape) else np.zeros(shape, values.dtype)
    theirs = {"line_width": "max_line_width", "edge_items": "edgeitems"}
    text = np.array2string(x, **{theirs.get(k, k): v for k, v in options.items()}) if options else str(x)
    print(x.dtype, tuple(shape), *(f"{k}={v}" for k, v in options.items()))
    print(*(f"{b:x}" for b in bits), sep=" ")
    print(text, end="\n\n")


def special(dtype):
    info = np.finfo(dtype)
    return np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1, -1, 0.5, 1e-4, 1000, info.max, info.tiny,
                     info.smallest_subnormal, info.eps, 1 / 3, 0.1, 0.3, 2.5, 1e6, 1e7, 1e8, 1e16], dtype)


# ---- chosen
for dtype in (f32, f64):
    for v in [*special(dtype), dtype(123456.7), dtype(999999), dtype(9999999), dtype(1e-5), dtype(1e15)]:
        write((), v)
        write((), v, precision=3)
        write((1,), v)
    tiny, huge = (1e-300, 1e300) if dtype is f64 else (1e-30, 1e30)
    for values in ([-0.0, 0, np.nan, np.inf, -np.inf], [1e28, 1e-28], [0.0, -0.0], [np.nan], [np.inf],
                   [-np.inf], [np.nan, 1.5], [-np.inf, 1e-9], [1, 2, 3], [1e5, 1], [0.001, 1], [0.000999, 1],
                   [1e-4, 0.05], [9.9999e-5, 0.05], [99999999.5, 1], [1e8], [1e6], [999999.5],
                   [0.5, 1.5, 2.5], [123.456, -0.5], [huge, 1, -tiny], [0.3, 1.2345678e-10],
                   [0.123456785, 0.123456775], [2**-44, 2**-13, 2**60, 2**77], [1e22, 1e23]):
        values = np.array(values, dtype)
        write(values.shape, values)
        write(values.shape, values, precision=3, floatmode="fixed")
        write(values.shape, values, precision=2, suppress_small=True)
        write(values.shape, values, precision=0)
        write(values.shape, values, precision=17)
    write((2, 3), np.round(np.array([.16023, .68114, .16, .01, 1, 0], dtype), 3))
    for shape in ((0,), (2, 0), (0, 3, 2)):
        write(shape, np.zeros(1, dtype))
# The shortest digits of a power of two can be others than those of its exact value rounded to as many.
write((1,), f64(2**-44), precision=15)
write((1,), f64(2**-44), precision=15, floatmode="fixed")
for v in (True, False):
    write((), v), write((1,), v)
write((2, 3), [True, False, True])
write((41,), [True, False, False])
write((1001,), [True, False, False])
write((0,), [True])
for v in (0, -1, 7, -2**63, 2**63 - 1):
    write((), np.int64(v)), write((1,), np.int64(v)), write((2, 2), np.array([v, 5, -3]))
write((2, 0), np.int64(0))

# ---- shapes where lines wrap, and where the middle is left out
for dtype in (f32, f64, np.int64):
    wide = (rng.normal(size=13) * 100).astype(dtype)
    for shape in ((75,), (4, 30), (2, 1, 9), (2, 2, 3, 2), (1, 1, 1, 1), (1000,), (1001,), (7, 150),
                  (1200, 2), (2, 1200), (30, 40), (5, 6, 40), (8, 8, 8, 8), (20, 2, 3, 10), (1, 2000, 1)):
        write(shape, wide)
    write((7, 7), wide, threshold=10)
    write((7, 7, 7), wide, threshold=10, edge_items=1)
    write((40,), wide, line_width=20)
    write((3, 4), wide, line_width=3)

# ---- at random
for i in range(count):
    dtype = (f32, f64, f64, np.int64)[rng.integers(4)]
    shape = tuple(int(n) for n in rng.integers(1, 6, size=rng.integers(0, 5)))
    n = min(int(np.prod(shape)), int(rng.integers(1, 25)))
    if dtype is np.int64:
        values = rng.integers(-10, 10, size=n) * 10 ** rng.integers(0, rng.integers(1, 18), size=n)
    else:
        low = int(rng.integers(-12, 9))
        values = rng.normal(size=n) * 10.0 ** rng.integers(low, low + rng.integers(1, 7), size=n)
        if rng.integers(3) == 0:
            values = np.round(values, rng.integers(0, 5))
        if rng.integers(5) == 0:
            values = np.frombuffer(rng.bytes(8 * n), f64).copy()
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            values = values.astype(dtype)
        odd = rng.random(n) < rng.choice([0, 0, 0.1, 0.4])
        values[odd] = rng.choice(special(dtype)[:5], size=odd.sum())
    options = {}
    if rng.integers(3) == 0:
        options["precision"] = int(rng.integers(0, 18))
    if rng.integers(6) == 0:
        options.update(floatmode="fixed", precision=int(rng.integers(0, 18)))
    if rng.integers(8) == 0:
        options["suppress_small"] = True
    if rng.integers(10) == 0:
        options["line_width"] = int(rng.integers(10, 120))
    if rng.integers(10) == 0:
        options.update(threshold=int(rng.integers(0, 60)), edge_items=int(rng.integers(1, 4)))
    if options and not shape:
        options.setdefault("precision", 8)
    write(shape, values, **options)
