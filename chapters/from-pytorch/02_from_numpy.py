# The left column of the rows for NumPy. 02_from_numpy.cpp is the right column, and prints the same.
import sys

import numpy as np

folder = sys.argv[1]


def draws():
    np.random.seed(1)
    a = np.random.randn(3)
    b = np.random.rand(2)
    c = np.random.permutation(4)
    print(np.round(a, 4), np.round(b, 4), c)


def arrays():
    x = np.linspace(0.0, 1.0, 5)
    y = np.zeros((2, 5)) + x
    print(y[1], y.shape, y.max(axis=0))
    print(np.round(np.exp(-y[0]), 3))
    print(np.concatenate([y, y]).sum(), x @ x)


def files():
    path = folder + "/arrays.npz"
    np.savez(path, x=np.arange(3.0), ids=np.array([2, 0]))
    arrays = np.load(path)
    print(arrays["x"][arrays["ids"]])


draws()
arrays()
files()
