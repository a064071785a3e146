# A character model that sees three letters back: embeddings, one hidden layer, minibatches, AdamW.
import sys
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(27, 8)
        self.hidden, self.out = nn.Linear(24, 64), nn.Linear(64, 27)

    def forward(self, x):
        return self.out(torch.tanh(self.hidden(self.letters(x).reshape(-1, 24))))


text = [0, 0, 0]  # 0 between names, 1 to 26 for a to z
for name in open(sys.argv[1] + "/people.txt"):
    text += [ord(c) - ord("a") + 1 for c in name.strip()] + [0, 0, 0]
all = torch.tensor(text)
torch.manual_seed(0)
model = Model()
adamw = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(201):
    at = torch.randint(0, len(all) - 3, (32,))[:, None] + torch.arange(4)  # 32 windows
    window = all[at]
    loss = nn.functional.cross_entropy(model(window[:, :3]), window[:, 3])
    adamw.zero_grad()
    loss.backward()
    adamw.step()
    if step % 20 == 0:
        print(step, loss.item())
