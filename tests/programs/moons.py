# Two moons, as in micrograd's demo: a small network, the hinge loss, L2 regularisation, a falling learning rate.
import math
import torch
from torch import nn

torch.set_default_dtype(torch.float64)
torch.manual_seed(1)
t = torch.linspace(0, math.pi, 50)
x = torch.cat([torch.stack([t.cos(), t.sin()], 1), torch.stack([1 - t.cos(), 0.5 - t.sin()], 1)])
x = x + 0.1 * torch.randn(100, 2)
y = torch.cat([torch.full((50, 1), -1.0), torch.full((50, 1), 1.0)])
model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
sgd = torch.optim.SGD(model.parameters())
for step in range(100):
    score = model(x)
    loss = torch.relu(1 - y * score).mean()
    loss = loss + 1e-4 * sum((p * p).sum() for p in model.parameters())
    for group in sgd.param_groups:
        group["lr"] = 1 - 0.009 * step
    sgd.zero_grad()
    loss.backward()
    sgd.step()
    if step % 10 == 0:
        accuracy = ((score > 0) == (y > 0)).double().mean()
        print(step, loss.item(), "accuracy", accuracy.item())
