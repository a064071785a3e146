# Digits from .npy files: minibatches, Adam, and the accuracy on images that were not trained on.
import sys
import numpy as np
import torch
from torch import nn

folder = sys.argv[1]
images = torch.from_numpy(np.load(folder + "/images.npy")).reshape(-1, 64)
labels = torch.from_numpy(np.load(folder + "/labels.npy"))
test_images, test_labels = images[800:1000], labels[800:1000]

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
adam = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(8):
    total = 0
    for batch in torch.randperm(800).split(40):
        logits = model(images[batch])
        loss = nn.functional.cross_entropy(logits, labels[batch])
        adam.zero_grad()
        loss.backward()
        adam.step()
        total += loss.item()
    with torch.no_grad():
        accuracy = (model(test_images).argmax(-1) == test_labels).float().mean()
    print(epoch, total / 20, f"accuracy {accuracy.item():.4f}")
