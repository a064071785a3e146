"""What NumPy and PyTorch need for the same work, on request: one line in, one line out.

    version torch                                   ->  torch 2.5.1+cpu      (empty: not installed)
    time 20 torch matmul float32 1 64 64 64         ->  0.00123              (seconds for 20 times, on 1 thread)

With one thread the seconds are the processor's, otherwise those that passed.
"""

import os
import sys
import time

# One thread unless a task says otherwise. With glibc's default thresholds PyTorch's allocator gives memory back
# at once, and pays for fresh pages again and again: the settings that help it are made here.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.pop("OPENBLAS_CORETYPE", None)
MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": "1073741824",
    "MALLOC_TRIM_THRESHOLD_": "2147483647",
    "MALLOC_TOP_PAD_": "67108864",
}
if not all(name in os.environ for name in MALLOC):
    os.environ.update(MALLOC)
    os.execv(sys.executable, [sys.executable] + sys.argv)  # glibc reads them when a process starts


def load(name):
    try:
        return __import__(name)
    except ImportError:
        return None


def numpy_matmul(dtype, threads, m, n, k):
    numpy = load("numpy")
    a, b = numpy.ones((m, k), dtype), numpy.ones((k, n), dtype)
    c = numpy.empty((m, n), dtype)
    return lambda: numpy.matmul(a, b, out=c)


def torch_matmul(dtype, threads, m, n, k):
    torch = load("torch")
    torch.set_num_threads(threads)
    a, b = (torch.ones(shape, dtype=getattr(torch, dtype)) for shape in ((m, k), (k, n)))
    c = torch.empty(m, n, dtype=a.dtype)
    return lambda: torch.matmul(a, b, out=c)


TASKS = {"numpy matmul": numpy_matmul, "torch matmul": torch_matmul}
ready = {}


def work(words):
    """The function for a task, made once."""
    key = " ".join(words)
    if key not in ready:
        module, what, dtype, threads, *sizes = words
        ready.clear()
        ready[key] = TASKS[f"{module} {what}"](dtype, int(threads), *map(int, sizes))
    return ready[key]


for line in sys.stdin:
    words = line.split()
    if words[0] == "version":
        module = load(words[1])
        print(f"{words[1]} {module.__version__}" if module else "", flush=True)
    else:
        run = work(words[2:])
        clock = time.thread_time if words[5] == "1" else time.perf_counter
        start = clock()
        for _ in range(int(words[1])):
            run()
        print(clock() - start, flush=True)
