# A character model that knows one letter back: a table of logits, trained on names, which then makes up new ones.
import sys
import torch

letters = [0]  # 0 between names, 1 to 26 for a to z
for name in open(sys.argv[1] + "/people.txt"):
    letters += [ord(c) - ord("a") + 1 for c in name.strip()] + [0]
all = torch.tensor(letters)
x, y = all[:-1], all[1:]

torch.manual_seed(0)
W = torch.randn(27, 27, requires_grad=True)
for step in range(101):
    loss = torch.nn.functional.cross_entropy(W[x], y)
    W.grad = None
    loss.backward()
    with torch.no_grad():
        W -= 30 * W.grad
    if step % 10 == 0:
        print(step, loss.item())
P = torch.softmax(W.detach(), -1)
for sample in range(5):
    name, at = "", 0
    while (at := torch.multinomial(P[at], 1).item()) != 0:
        name += chr(ord("a") + at - 1)
    print(name)
