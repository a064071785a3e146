"""NumPy's half of the exchange of files: `give DIR` fills DIR/in with random arrays, as every kind of file; `take DIR` compares
what the engine made of them in DIR/out. Prints the number of files."""
import pathlib
import sys

import numpy as np

try:
    from safetensors.numpy import load_file, save_file
except ImportError:
    save_file = None

STORED = {"double": ("<f8", ">f8"), "float": ("<f4", ">f4", "<f2", ">f2"), "bool": ("?",),
          "int64": ("<i8", ">i8", "<i4", ">i4", "<i2", "|i1", "|u1", "<u2", ">u4", "<u8")}
SHAPES = ((), (1,), (0,), (7,), (3, 5), (5, 0, 2), (2, 3, 4), (3, 1, 2, 1, 4, 2))


def arrays(seed):
    rng = np.random.default_rng(seed)
    for kind, stored in STORED.items():
        for dtype in stored:
            for shape in SHAPES:
                a = rng.normal(scale=100, size=shape)
                with np.errstate(invalid="ignore"):
                    a = np.asarray(np.abs(a) if "u" in dtype else a).astype(dtype)
                if a.dtype.kind == "f" and a.size > 2:
                    a.flat[:3] = np.inf, np.nan, -0.0
                name = f"{kind}_{dtype.translate(str.maketrans('<>|?', 'lbnt'))}_{'x'.join(map(str, shape))}"
                yield name, a
                if a.ndim > 1:
                    yield name + "_fortran", np.asfortranarray(a)
                    yield name + "_strided", np.repeat(a, 2, axis=0)[::2]


def give(folder):
    (folder / "in").mkdir()
    (folder / "out").mkdir()
    named = dict(arrays(43))
    for name, a in named.items():
        np.save(folder / "in" / f"{name}.npy", a)
    np.savez(folder / "in" / "all.npz", **named)
    if save_file:
        save_file({k: np.ascontiguousarray(a.astype(a.dtype.newbyteorder("="))) for k, a in named.items()},
                  folder / "in" / "all.safetensors", metadata={"made by": "NumPy \"and\" safetensors\n"})
    return named


def same(name, got, given):
    assert got.shape == given.shape, name
    kinds = {"f": np.float64 if given.dtype.itemsize == 8 else np.float32, "i": np.int64, "u": np.int64, "b": np.bool_}
    assert got.dtype == kinds[given.dtype.kind], (name, got.dtype)
    want = given.astype(got.dtype)
    if got.dtype.kind == "f":  # bit for bit, but for which NaN it is
        got, want = (np.where(np.isnan(x), 1, x).ravel().view(f"i{x.dtype.itemsize}") for x in (got, want))
    assert np.array_equal(got, want), name


def take(folder):
    files = sorted(path.name for path in (folder / "in").iterdir())
    assert files == sorted(path.name for path in (folder / "out").iterdir()), "not every file came back"
    for file in files:
        read = load_file if file.endswith(".safetensors") else np.load
        given, got = read(folder / "in" / file), read(folder / "out" / file)
        if file.endswith(".npy"):
            same(file, got, given)
            continue
        assert sorted(given) == sorted(got), file
        for name in given:
            same(f"{file}/{name}", got[name], given[name])
    return files


if __name__ == "__main__":
    print(len({"give": give, "take": take}[sys.argv[1]](pathlib.Path(sys.argv[2]))), "files,", "safetensors among them" if save_file else "without safetensors")
