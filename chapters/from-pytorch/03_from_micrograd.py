# The left column of the rows for micrograd. 03_from_micrograd.cpp is the right column, and prints the same.
from micrograd.engine import Value

a = Value(-4.0)
b = Value(2.0)
c = a * b + b**3
d = (c - a).relu() * 2
d.backward()
print(d.data, a.grad, b.grad)
