# The left column of README.md: each function is one row. 01_from_pytorch.cpp is the right column, and prints the same.
import sys

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn

np.set_printoptions(precision=4)
torch.set_default_dtype(torch.float64)


def gradients():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = (x * x).sum()
    y.backward()
    print("gradient", x.grad.numpy())


def inner_result():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    h = torch.exp(x)
    h.retain_grad()
    (h * h).sum().backward()
    print("of a result", h.grad.numpy())


def upstream():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    y.backward(torch.tensor([1.0, 10.0]))
    print("from dy", x.grad.numpy())


# a module
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(2, 8)
        self.out = nn.Linear(8, 1)

    def forward(self, x):
        return self.out(torch.tanh(self.hidden(x)))


def training():
    torch.manual_seed(0)
    x = torch.randn(64, 2)
    y = x[:, :1] * x[:, 1:]
    net = Net()
    adam = torch.optim.Adam(net.parameters(), lr=0.01)
    for step in range(100):
        loss = nn.functional.mse_loss(net(x), y)
        adam.zero_grad()
        loss.backward()
        adam.step()
    print("loss", f"{loss.item():.6f}")
    return net, x


def sequential():
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
    y = net(torch.ones(3, 2))
    name = list(net.state_dict())[-1]
    print("sequential", name, y[0].detach().numpy())


def accuracy():
    logits = torch.tensor([[0.1, 0.8], [0.9, 0.2], [0.3, 0.4]])
    target = torch.tensor([1, 0, 0])
    correct = logits.argmax(-1) == target
    loss = nn.functional.cross_entropy(logits, target)
    print(f"{loss:.4f} {correct.double().mean():.4f}")


def clipped(net, x):
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    loss = net(x).abs().mean()
    sgd.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(
        net.parameters(), 0.5)
    sgd.step()
    print("norm", f"{norm.item():.6f}")


def prediction(net, x):
    net.eval()
    with torch.no_grad():
        y = net(x[:2])
    print("prediction", y.numpy().ravel())


def by_hand():
    w = torch.tensor([3.0, -2.0], requires_grad=True)
    for step in range(5):
        loss = (w * w).sum()
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
        w.grad = None
    print("by hand", w.detach().numpy())


def detached():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x.detach()).sum()
    y.backward()
    print("detached", x.grad.numpy())


def twice():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x * x).sum()
    (slope,) = torch.autograd.grad(
        y, x, create_graph=True)
    slope.sum().backward()
    print("second", x.grad.numpy())


def curvature():
    def f(x):
        return (x[0] * x[0] * x[1]).sum()

    x = torch.tensor([1.0, 2.0])
    H = torch.autograd.functional.hessian(f, x)
    print("hessian", H.numpy())


def generators():
    torch.manual_seed(0)
    a = torch.randn(2, 3)
    b = torch.rand(3)
    order = torch.randperm(5)
    next = torch.multinomial(torch.softmax(a, -1), 1)
    print("draws", a.numpy(), b.numpy())
    print(order.numpy(), next.reshape(-1).numpy())


def files(net, x, folder):
    path = folder + "/net.safetensors"
    save_file(net.state_dict(), path)
    other = Net()
    other.load_state_dict(load_file(path))
    print("loaded", torch.equal(other(x), net(x)))


def shapes():
    x = torch.arange(12.0).reshape(3, -1)
    print(x[1].numpy(), x[:, 1:3].sum().item())
    print(x.T.reshape(-1)[:3].numpy(), x.shape[-1])
    print(x.mean(-1).numpy(), x.argmax(0).numpy())
    print(torch.cat([x, x], 1).shape[1])
    y = torch.where(x > 5, x, 0.0)
    print(y.sum().item(), (x > 5).sum().item())


def renamed():
    x = torch.arange(6.0).reshape(2, 3)
    y = x.expand(4, 2, 3)
    print(f"{x.std():.4f}", tuple(y.shape))
    rows = nn.functional.one_hot(torch.tensor([2, 0]), 3)
    print(rows.numpy())
    print(x[:, [2, 0]].numpy())


def types():
    i = torch.tensor([1, 2, 3])
    x = torch.tensor([0.5, 0.5, 0.5])
    print("sum", (i + x).numpy())


gradients()
inner_result()
upstream()
net, x = training()
sequential()
accuracy()
clipped(net, x)
prediction(net, x)
by_hand()
detached()
twice()
curvature()
generators()
files(net, x, sys.argv[1])
shapes()
renamed()
types()
