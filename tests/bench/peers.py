"""What NumPy and PyTorch need for the same work, on request: one line in, one line out.

    version torch                                   ->  torch 2.5.1+cpu      (empty: not installed)
    time 20 torch matmul float32 1 64 64 64         ->  0.00123              (seconds for 20 times, on 1 thread)

With one thread the seconds are the processor's, otherwise those that passed. A task is made once, by the function
of its name below, and what that returns does the work; where this in turn returns seconds, it is they that count.
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
    a, b = (torch.ones(shape, dtype=getattr(torch, dtype)) for shape in ((m, k), (k, n)))
    c = torch.empty(m, n, dtype=a.dtype)
    return lambda: torch.matmul(a, b, out=c)


def torch_attention(dtype, threads, heads, length, width, backward, backend):
    """Causal. Backend 0: PyTorch's math path, 1: its fused kernel, 2: one operation after another, recorded."""
    torch = load("torch")
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v, grad = (torch.randn(1, heads, length, width, dtype=getattr(torch, dtype)) for _ in range(4))
    for x in (q, k, v):
        x.requires_grad_(backward == 1 or backend == 2)
    later = torch.ones(length, length, dtype=torch.bool).triu(1)

    def composed():
        scores = (q @ k.transpose(-2, -1) / width**0.5).masked_fill(later, float("-inf"))
        return torch.softmax(scores, -1) @ v

    def fused():
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION if backend == 1 else SDPBackend.MATH):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    attend = composed if backend == 2 else fused

    def there_and_back():
        torch.autograd.grad(attend(), (q, k, v), grad)

    def there():
        attend()

    return there_and_back if backward else there


def torch_decode(dtype, threads, heads, length, width):
    """One token against a cache."""
    torch = load("torch")
    q, k, v = (torch.randn(1, heads, n, width, dtype=getattr(torch, dtype)) for n in (1, length, length))
    return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)


def torch_elementwise(dtype, threads, n, backward):
    """A thousand multiplications, one after another, recorded; or the way back through them."""
    torch = load("torch")
    x = torch.ones(n, dtype=getattr(torch, dtype), requires_grad=True)
    a, grad = torch.full((n,), 0.999, dtype=x.dtype), torch.ones(n, dtype=x.dtype)

    def run():
        y = x
        start = time.thread_time()
        for _ in range(1000):
            y = y * a
        middle = time.thread_time()
        torch.autograd.grad(y, x, grad)
        return time.thread_time() - middle if backward else middle - start

    return run


def torch_gpt(dtype, threads, part):
    """A step of training a small GPT. Part 0: all of it, 1: forward, 2: backward, 3: AdamW."""
    torch = load("torch")
    nn, F = torch.nn, torch.nn.functional
    layers, heads, width, block, batch, vocabulary = 4, 4, 128, 64, 12, 65
    clock = time.thread_time if threads == 1 else time.perf_counter

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            parts = self.c_attn(self.ln_1(x)).split(width, -1)
            q, k, v = (y.view(batch, block, heads, width // heads).transpose(1, 2) for y in parts)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.c_proj(y.transpose(1, 2).reshape(batch, block, width))
            return x + self.down(F.gelu(self.up(self.ln_2(x))))

    wte, wpe = nn.Embedding(vocabulary, width), nn.Embedding(block, width)
    blocks = [Block() for _ in range(layers)]
    ln_f, head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
    model = nn.ModuleList([wte, wpe, *blocks, ln_f, head])
    adam = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    ids = torch.randint(vocabulary, (batch, block + 1))
    positions = torch.arange(block)

    def run():
        times = [clock()]
        x = wte(ids[:, :-1]) + wpe(positions)
        for one in blocks:
            x = one(x)
        loss = F.cross_entropy(head(ln_f(x)).view(-1, vocabulary), ids[:, 1:].reshape(-1))
        times.append(clock())
        loss.backward()
        times.append(clock())
        adam.step()
        adam.zero_grad()
        times.append(clock())
        return times[part] - times[part - 1] if part else times[3] - times[0]

    return run


ready = {}


def work(words):
    """The function for a task, made once; a few are kept."""
    key = " ".join(words)
    if key not in ready:
        module, what, dtype, threads, *sizes = words
        while len(ready) >= 4:
            del ready[next(iter(ready))]
        if module == "torch":
            load("torch").set_num_threads(int(threads))
        ready[key] = globals()[f"{module}_{what}"](dtype, int(threads), *map(int, sizes))
    return ready[key]


for line in sys.stdin:
    words = line.split()
    if words[0] == "version":
        module = load(words[1])
        print(f"{words[1]} {module.__version__}" if module else "", flush=True)
    else:
        run = work(words[2:])
        clock = time.thread_time if words[5] == "1" else time.perf_counter
        start, own = clock(), 0.0
        for _ in range(int(words[1])):
            seconds = run()
            own += seconds if isinstance(seconds, float) else 0.0
        print(own or clock() - start, flush=True)
