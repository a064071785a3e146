# Linear regression, without a module.
import torch

torch.set_default_dtype(torch.float64)
torch.manual_seed(0)
x = torch.randn(100, 3)
y = x @ torch.tensor([2, -1, 0.5]) + 0.3 + 0.1 * torch.randn(100)
w = torch.zeros(3, requires_grad=True)
b = torch.zeros((), requires_grad=True)
sgd = torch.optim.SGD([w, b], lr=0.1, momentum=0.5)
for step in range(30):
    loss = torch.nn.functional.mse_loss(x @ w + b, y)
    sgd.zero_grad()
    loss.backward()
    sgd.step()
    print(step, loss.item())
print("w =", " ".join(f"{v:.4f}" for v in w.tolist()), f"b = {b.item():.4f}")
