# One layer of attention that learns to reverse sequences.
import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.W_q, self.W_k = nn.Linear(d, d, bias=False), nn.Linear(d, d, bias=False)
        self.W_v, self.W_o = nn.Linear(d, d, bias=False), nn.Linear(d, d, bias=False)

    def forward(self, x):
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        return self.W_o(nn.functional.scaled_dot_product_attention(q, k, v))


class Reverser(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.position = nn.Embedding(10, 32), nn.Embedding(8, 32)
        self.attention, self.head = SelfAttention(32), nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.attention(self.token(x) + self.position.weight))


torch.manual_seed(0)
model = Reverser()
adam = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(101):
    x = torch.randint(0, 10, (64, 8))
    y = x.flip(1)
    logits = model(x)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
    adam.zero_grad()
    loss.backward()
    adam.step()
    if step % 10 == 0:
        print(step, loss.item(), f"accuracy {(logits.argmax(-1) == y).float().mean().item():.3f}")
