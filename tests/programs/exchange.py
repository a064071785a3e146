# Weights to tapehead and back: saves a model, trains it on, and compares it with what exchange.cpp made of the file.
import os
import sys
import torch
from safetensors.torch import load_file, save_file
from torch import nn

folder = sys.argv[1]
torch.manual_seed(2)
model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 1))
save_file(model.state_dict(), folder + "/pytorch.safetensors")

torch.manual_seed(3)
x = torch.randn(40, 4)
y = (x * x).sum(-1, keepdim=True)
adamw = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(20):
    loss = nn.functional.mse_loss(model(x), y)
    adamw.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    adamw.step()
    with torch.no_grad():
        loss = nn.functional.mse_loss(model(x), y)
    print(step, loss.item(), "norm", norm.item())
if os.path.exists(folder + "/tapehead.safetensors"):
    for name, ours in load_file(folder + "/tapehead.safetensors").items():
        torch.testing.assert_close(ours, model.state_dict()[name], rtol=1e-4, atol=1e-5)
