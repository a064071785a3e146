#!/usr/bin/env python3
"""Writes ops_more.npz and ops_more.tsv: cases for the operations that ops.npz has none for, in its form.

    python3 tests/golden/make_ops_more.py

Values by NumPy in float64. Gradients by the complex step, Im f(x + ih) / h with h = 1e-30, which has no rounding error
worth the name; erf, which NumPy lacks, by Python's math and its derivative.
"""
import math

import numpy as np

import make_golden

rng = np.random.default_rng(20_23)
cases = []


def draw(*shape):
    return np.round(rng.normal(size=shape), 4)


def packed(a):
    a = np.asarray(a)
    d = {"shape": list(a.shape), "data": a.ravel().tolist()}
    if a.dtype != np.float64:
        d["dtype"] = {"i": "int64", "b": "bool"}[a.dtype.kind]
    return d


def case(name, op, inputs, f, attrs=None, derivative=None, note=""):
    """f takes the inputs by name and gives the result, or (result, indices)."""
    inputs = {k: np.asarray(v) for k, v in inputs.items()}
    both = f(**inputs)
    out, indices = both if isinstance(both, tuple) else (both, None)
    out = np.asarray(out)
    dy = draw(*out.shape)
    grads = {}
    for k, x in inputs.items():
        if x.dtype != np.float64:
            continue
        g = np.zeros(x.shape)
        if derivative is not None:
            g = dy * derivative(x)
        else:
            for i in np.ndindex(x.shape):
                moved = x.astype(complex)
                moved[i] += 1e-30j
                y = f(**{**inputs, k: moved})
                g[i] = np.sum((y[0] if isinstance(y, tuple) else y).imag * dy) / 1e-30
        grads[k] = packed(g)
    outputs = {"out": packed(out)} | ({"indices": packed(indices)} if indices is not None else {})
    cases.append(dict(name=name, op=op, dtype="float64", note=note, tol=1e-12, edge=False, attrs=attrs or {},
                      inputs={k: packed(v) for k, v in inputs.items()}, grad_out=packed(dy), outputs=outputs, grads=grads))


def added(x, dim, index, src, rows):
    y = x.astype(np.result_type(x, src))
    for i in np.ndindex(src.shape):
        at = list(i)
        at[dim] = index[i[dim]] if rows else index[i]
        y[tuple(at)] = y[tuple(at)] + src[i]
    return y


def largest(x, k, dim):
    order = np.argsort(-x.real, axis=dim, kind="stable").take(range(k), axis=dim)
    return np.take_along_axis(x, order, dim), order


def deviation(x, dims, correction, keepdim):
    d = x - x.mean(axis=dims, keepdims=True)
    n = x.size // max(1, x.mean(axis=dims).size)
    return np.sqrt((d * d).sum(axis=dims, keepdims=keepdim) / (n - correction))


case("add_number", "add_number", {"x": draw(2, 3)}, lambda x: x + 1.25, {"number": 1.25})
case("sub_number", "sub_number", {"x": draw(2, 3)}, lambda x: x - 1.25, {"number": 1.25})
case("number_sub", "number_sub", {"x": draw(2, 3)}, lambda x: 1.25 - x, {"number": 1.25})
case("mul_number", "mul_number", {"x": draw(2, 3)}, lambda x: -0.75 * x, {"number": -0.75})
case("div_number", "div_number", {"x": draw(2, 3)}, lambda x: x / -0.75, {"number": -0.75})
case("number_div", "number_div", {"x": draw(2, 3) + 4}, lambda x: 1.5 / x, {"number": 1.5})
case("erf", "erf", {"x": draw(3, 4) * 2}, lambda x: np.vectorize(math.erf)(x), derivative=lambda x: 2 / math.sqrt(math.pi) * np.exp(-x * x))
case("contiguous", "contiguous", {"x": draw(3, 4)}, lambda x: x.T)
case("unslice", "unslice", {"x": draw(2, 3)},
     lambda x: np.stack([x[:, 0] * 0, x[:, 0], x[:, 0] * 0, x[:, 1], x[:, 0] * 0, x[:, 2], x[:, 0] * 0], 1),
     {"shape": [2, 7], "dim": 1, "start": 1, "step": 2})
case("select", "select", {"x": draw(2, 3, 4)}, lambda x: x[:, 2], {"dim": 1, "index": 2})
case("select_from_end", "select", {"x": draw(2, 3)}, lambda x: x[..., -1], {"dim": -1, "index": -1})
case("flip", "flip", {"x": draw(2, 3, 2)}, lambda x: x[:, ::-1], {"dim": 1})
case("unsqueeze", "unsqueeze", {"x": draw(2, 3)}, lambda x: x[:, None], {"dim": 1})
case("squeeze", "squeeze", {"x": draw(2, 1, 3)}, lambda x: x[:, 0], {"dim": 1})
case("min", "min", {"x": draw(3, 5)}, lambda x: np.take_along_axis(x, x.real.argmin(1)[:, None], 1)[:, 0], {"dims": [1]})
case("min_keep", "min", {"x": draw(3, 2)}, lambda x: np.take_along_axis(x, x.real.argmin(0)[None], 0),
     {"dims": [0], "keepdim": True})
case("std", "std", {"x": draw(3, 5)}, lambda x: deviation(x, (1,), 1, False), {"dims": [1], "correction": 1})
case("std_biased", "std", {"x": draw(2, 3, 4)}, lambda x: deviation(x, (0, 2), 0, True),
     {"dims": [0, 2], "correction": 0, "keepdim": True})
case("norm", "norm", {"x": draw(3, 5)}, lambda x: np.sqrt((x * x).sum(1)), {"dims": [1]})
case("norm_all", "norm", {"x": draw(2, 3)}, lambda x: np.sqrt((x * x).sum()))
index = np.array([[2, 0, 2], [1, 1, 0]])
case("scatter_add", "scatter_add", {"x": draw(2, 4), "index": index, "src": draw(2, 3)},
     lambda x, index, src: added(x, 1, index, src, False), {"dim": 1}, note="repeated indices")
case("scatter_add_dim0", "scatter_add", {"x": draw(3, 4), "index": index, "src": draw(2, 3)},
     lambda x, index, src: added(x, 0, index, src, False), {"dim": 0}, note="an index smaller than x")
case("index_select", "index_select", {"x": draw(3, 4), "index": np.array([2, 0, 2, 1])}, lambda x, index: x[index], {"dim": 0})
case("index_select_last", "index_select", {"x": draw(2, 3, 4), "index": np.array([3, 3])}, lambda x, index: x[..., index],
     {"dim": -1})
case("index_add", "index_add", {"x": draw(3, 2), "index": np.array([2, 0, 2, 2]), "src": draw(4, 2)},
     lambda x, index, src: added(x, 0, index, src, True), {"dim": 0})
case("index_add_last", "index_add", {"x": draw(2, 3), "index": np.array([1, 1]), "src": draw(2, 2)},
     lambda x, index, src: added(x, 1, index, src, True), {"dim": 1})
case("topk", "topk", {"x": draw(3, 6)}, lambda x: largest(x, 2, 1), {"k": 2, "dim": 1})
case("topk_dim0", "topk", {"x": draw(5, 2)}, lambda x: largest(x, 3, 0), {"k": 3, "dim": 0})
case("topk_all", "topk", {"x": draw(4)}, lambda x: largest(x, 4, 0), {"k": 4, "dim": -1})
for how, f in dict(mean=np.mean, sum=np.sum, none=lambda v: v).items():
    case("mse_loss_" + how, "mse_loss", {"x": draw(3, 2), "target": draw(3, 2)},
         lambda x, target: f((x - target) * (x - target)), {"reduction": how})
keep = np.array([[True, False, True], [False, True, True]])
case("dropout", "dropout", {"x": draw(2, 3), "keep": keep}, lambda x, keep: np.where(keep, x / 0.75, x * 0), {"p": 0.25})
case("dropout_rows", "dropout", {"x": draw(2, 3), "keep": keep[:, :1]}, lambda x, keep: np.where(keep, x / 0.4, x * 0), {"p": 0.6},
     note="the mask broadcasts")
case("layer_norm_3d", "layer_norm", {"x": draw(2, 3, 5), "weight": draw(5), "bias": draw(5)},
     lambda x, weight, bias: (x - x.mean(-1, keepdims=True)) / np.sqrt(
         ((x - x.mean(-1, keepdims=True)) ** 2).mean(-1, keepdims=True) + 1e-5) * weight + bias, {"eps": 1e-5})
case("rms_norm_plain", "rms_norm", {"x": draw(2, 5)}, lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6), {"eps": 1e-6})
for name, f in dict(sin=np.sin, cos=np.cos, expm1=np.expm1).items():
    case(name, name, {"x": draw(3, 4) * 2}, lambda x: f(x))
case("log1p", "log1p", {"x": np.abs(draw(3, 4))}, lambda x: np.log1p(x))
case("softmax_backward", "softmax_backward", {"A": np.abs(draw(3, 4)), "dA": draw(3, 4)},
     lambda A, dA: A * (dA - (dA * A).sum(1, keepdims=True)), {"dim": 1})
case("linear", "linear", {"x": draw(2, 3, 4), "weight": draw(5, 4), "bias": draw(5)}, lambda x, weight, bias: x @ weight.T + bias)
case("linear_one", "linear", {"x": draw(4), "weight": draw(2, 4)}, lambda x, weight: x @ weight.T, note="one row, no bias")
case("softplus", "softplus", {"x": draw(3, 4) * 4}, lambda x: np.log1p(np.exp(x * 1.5)) / 1.5, {"beta": 1.5})

named, columns, rows = make_golden.ops({"cases": cases})
(make_golden.HERE / "ops_more.npz").write_bytes(make_golden.npz(named))
(make_golden.HERE / "ops_more.tsv").write_bytes(make_golden.tsv(columns, rows))
