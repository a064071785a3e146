#!/usr/bin/env python3
"""Makes the golden files of this folder from a folder of reference values, an "oracle".

    python3 tests/golden/make_golden.py [ORACLE] [--out DIR] [--check]

ORACLE is a folder with ops_cases.json, sdpa_cases.json, rng.json, chapter.json and gpt_step.json (its README.md says what
stands in them); the default is ../shared/oracle beside the project. Files go to DIR, the default being this folder;
the tests read another one where TAPEHEAD_GOLDEN=DIR says so. --check writes nothing and says which files would change. An
archive X.npz holds the tensors, X.tsv beside it what is not a tensor:

    ops, sdpa   CASE/in/NAME, CASE/grad_out, CASE/out/NAME, CASE/grad/NAME; a line a case, options as key=value;key=value
    rng         LIBRARY/KIND/SEED[/PART]; a line for each kind whose calls are mixed, with the calls
    chapter     ID/inputs/NAME, ID/exact[/NAME] with numbers as zero-dimensional arrays; a line an entry, and in
                chapter_statements.tsv a line for each statement that is not recomputed
    gpt_step    params/NAME, idx, targets, logits, loss, grads/NAME, after_steps/…; a line a setting
    numpy/      files of every kind that NumPy writes, each arange(n) in its shape; the table of them

The same oracle gives the same bytes: nothing is compressed, and entries carry the date 1980-01-01.
"""
import argparse
import io
import json
import pathlib
import sys
import zipfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
DTYPES = {None: np.float64, "float64": np.float64, "float32": np.float32, "int64": np.int64, "bool": np.bool_}


def is_tensor(v):
    return isinstance(v, dict) and "shape" in v and "data" in v


def tensor(v):
    return np.array([float(x) if isinstance(x, str) else x for x in v["data"]], DTYPES[v.get("dtype")]).reshape(v["shape"])


def as_array(v):
    """A tensor, a number or a nested list of numbers as an array; None for what is none of these."""
    if is_tensor(v):
        return tensor(v)
    try:
        a = np.array(v, np.float64 if isinstance(v, str) else None)  # "inf", "-inf" and "nan" are numbers
        if a.dtype.kind == "U":
            a = a.astype(np.float64)
    except (ValueError, TypeError):
        return None
    kinds = {"b": np.bool_, "i": np.int64, "f": np.float64}
    return a.astype(kinds[a.dtype.kind]) if a.dtype.kind in kinds else None


def arrays(prefix, v):
    """Every array in v, under its path."""
    if isinstance(v, dict) and not is_tensor(v):
        for key, inner in v.items():
            yield from arrays(f"{prefix}/{key}", inner)
    elif isinstance(v, list) and any(is_tensor(x) for x in v):
        for i, inner in enumerate(v):
            yield from arrays(f"{prefix}/{i}", inner)
    elif (a := as_array(v)) is not None:
        yield prefix, a


def word(v):
    """A setting as one word: numbers so that they read back exactly, lists with commas."""
    if v is None:
        return "none"
    if isinstance(v, bool):
        return "1" if v else "0"
    if isinstance(v, list):
        return ",".join(word(x) for x in v)
    text = str(v) if isinstance(v, str) else repr(v)
    assert not set(text) & set("\t\n;"), text
    return text


def settings(v, prefix=""):
    """(key, word) of all in v, keys of inner ones joined with dots."""
    for key, inner in v.items():
        if isinstance(inner, dict):
            yield from settings(inner, f"{prefix}{key}.")
        elif isinstance(inner, list) and inner and isinstance(inner[0], dict):
            for i, x in enumerate(inner):
                yield from settings(x, f"{prefix}{key}.{i}.")
        else:
            yield prefix + key, word(inner)


def options(v):
    return ";".join(f"{key}={value}" for key, value in settings(v))


def npy(a, version=None):
    out = io.BytesIO()
    np.lib.format.write_array(out, a, version)
    return out.getvalue()


def npz(named, compression=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, a in named.items():
            info = zipfile.ZipInfo(name + ".npy", (1980, 1, 1, 0, 0, 0))
            info.compress_type = compression
            archive.writestr(info, npy(a))
    return out.getvalue()


def tsv(columns, rows):
    lines = [columns] + [[" ".join(str(cell).split()) for cell in row] for row in rows]
    return "".join("\t".join(line) + "\n" for line in lines).encode()


def ops(data):
    named, rows = {}, []
    for c in data["cases"]:
        for part, key in (("in", "inputs"), ("grad_out", "grad_out"), ("out", "outputs"), ("grad", "grads")):
            if c.get(key) is not None:
                named.update(arrays(f"{c['name']}/{part}", c[key]))
        rows.append([c["name"], c["op"], repr(c["tol"]), word(c["edge"]), options(c["attrs"]), c["note"]])
    return named, ["name", "op", "tol", "edge", "attrs", "note"], rows


def sdpa(data):
    named, rows = {}, []
    for c in data["cases"]:
        named.update(arrays(f"{c['name']}/in", c["inputs"]))
        named.update(arrays(f"{c['name']}/out", c["results"]))
        rows.append([c["name"], c["dtype"], repr(c["tol"]), options(c["options"]), c["note"]])
    return named, ["name", "dtype", "tol", "options", "note"], rows


def rng(data):
    named, rows = dict(arrays("mt19937", data["mt19937"]["words"])), []
    for library in ("numpy", "torch"):
        for kind, entry in data[library].items():
            named.update(arrays(f"{library}/{kind}", entry.get("draws", {})))
            if "calls" in entry:
                rows.append([f"{library}/{kind}", ";".join(f"{call}={count}" for call, count in entry["calls"])])
    return named, ["kind", "calls"], rows


# The book's own words, where the reference shortens them.
QUOTED = {
    "naive_softmax_overflow": "a logit of, say, 1000 would make exp(1000) = inf and the whole row becomes NaN",
    "softmax_exponent_range": "in (0, 1], no overflow",
    "logsumexp_promised": "We unpack softmax’s numerical behavior — overflow, the log-sum-exp trick, the temperature induced by "
                          "the scale — below",
}


def chapter(data):
    types = {e["id"]: e["type"] for e in data["errata_candidates"]}
    named, rows = {}, []
    for e in data["entries"]:
        for part in ("inputs", "exact"):
            named.update(arrays(f"{e['id']}/{part}", e[part]))
        says = e["book_says"] or {}
        agrees = {None: "", True: "true", False: "false"}[e["agrees"]]
        rows.append([e["id"], e["section"], e["kind"], e["source"], QUOTED.get(e["id"], says.get("text", "")),
                     " ".join(says.get("values", [])), says.get("decimals", ""), agrees, types.get(e["id"], ""), e["note"] or ""])
    # Found after the reference was made. It has no exact values: the program computes both masks.
    rows.append(["padding_zeroes_scores", "Causal & Padding Masks: Same Machinery, Different Information Flow", "prose", "seed",
                 "A padding mask zeroes out every score whose key is a pad token", "", "", "false", "statement",
                 "a score of 0 is an ordinary score; the mask sets it to -inf, and the weight becomes 0 (exercise 4 (a) says why)"])
    return named, ["id", "section", "kind", "source", "text", "values", "decimals", "agrees", "erratum", "note"], rows


def statements(data):
    """What the chapter says that no computation of ours can settle."""
    return ["id", "section", "kind", "source", "text", "values", "decimals", "agrees", "note"], [
        [s["id"], "", "statement", s["source"], QUOTED.get(s["id"], s["book_says"]), "", "", "", s["note"]]
        for s in data["statements_not_recomputed"]]


def gpt_step(data):
    parts = ("params", "idx", "targets", "logits", "loss", "grads", "after_steps")
    named = {name: a for part in parts for name, a in arrays(part, data[part])}
    rows = list(settings({key: data[key] for key in ("config", "dtype", "adamw")}))
    return named, ["setting", "value"], rows + [("note", data["note"])]


def numpy_files():
    """NumPy's own files, by their names; each array is arange(n) in its shape, booleans 0 1 0 1 …"""
    files, rows = {}, []

    def counting(shape, dtype):
        n = int(np.prod(shape))
        return (np.arange(n) % 2 if np.dtype(dtype).kind == "b" else np.arange(n)).astype(dtype).reshape(shape)

    def add(name, a, data):
        files[f"numpy/{name}.npy"] = data
        rows.append([name + ".npy", word(list(a.shape)), a.dtype.kind])

    everything = {}
    for dtype in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", ">f4", ">f8", ">i2", ">i4", ">i8", ">f2"):
        a = counting((2, 3), dtype)
        name = dtype.replace(">", "big_").replace("?", "bool")
        add(name, a, npy(a))
        everything[name] = a
    for shape in ((), (3,), (0,), (2, 0), (1, 1, 1), (2, 1, 3, 1, 2, 1)):
        a = counting(shape, "f8")
        add("shape_" + ("x".join(map(str, shape)) or "none"), a, npy(a))
        everything["shape_" + ("x".join(map(str, shape)) or "none")] = a
    for shape in ((2, 3), (2, 3, 4), (3,)):
        a = np.asfortranarray(counting(shape, ">f8" if len(shape) == 3 else "f4"))
        add("fortran_" + "x".join(map(str, shape)), a, npy(a))
        everything["fortran_" + "x".join(map(str, shape))] = a
    for version in ((1, 0), (2, 0), (3, 0)):
        a = counting((2, 3), "f4")
        add(f"version_{version[0]}", a, npy(a, version))
    plain = npy(counting((5,), "f8"))  # a header longer than 256 bytes, as the format allows
    length = 10 + int.from_bytes(plain[8:10], "little")
    header = plain[10:length].rstrip() + b" " * 700 + b"\n"
    add("padded", counting((5,), "f8"), plain[:8] + len(header).to_bytes(2, "little") + header + plain[length:])

    for name, save in (("savez", np.savez), ("savez_compressed", np.savez_compressed)):
        out = io.BytesIO()
        save(out, **everything, big=counting((300, 40), "f8"), flat=np.zeros(5000))
        files[f"numpy/{name}.npz"] = out.getvalue()
    files["numpy/files.tsv"] = tsv(["file", "shape", "kind"], rows)
    return files


def make(oracle):
    files = numpy_files()
    for name, source, build in (("ops", "ops_cases", ops), ("sdpa", "sdpa_cases", sdpa), ("rng", "rng", rng),
                                ("chapter", "chapter", chapter), ("gpt_step", "gpt_step", gpt_step)):
        named, columns, rows = build(json.loads((oracle / f"{source}.json").read_text()))
        files[f"{name}.npz"] = npz(named)
        files[f"{name}.tsv"] = tsv(columns, rows)
    files["chapter_statements.tsv"] = tsv(*statements(json.loads((oracle / "chapter.json").read_text())))
    return files


def same(name, new, old):
    if not name.startswith("numpy/savez"):
        return new == old
    a, b = (np.load(io.BytesIO(x)) for x in (new, old))  # their bytes have a date and the compressor's taste in them
    return a.files == b.files and all(a[k].dtype == b[k].dtype and np.array_equal(a[k], b[k]) for k in a.files)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("oracle", nargs="?", type=pathlib.Path, default=HERE.parents[1].parent / "shared" / "oracle")
    parser.add_argument("--out", type=pathlib.Path, default=HERE)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    differing = 0
    for name, data in make(args.oracle).items():
        path = args.out / name
        if path.exists() and same(name, data, path.read_bytes()):
            continue
        differing += 1
        print(f"{path}: {'differs' if path.exists() else 'missing'}" if args.check else path)
        if not args.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return 1 if args.check and differing else 0


if __name__ == "__main__":
    sys.exit(main())
