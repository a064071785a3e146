# A pendulum's frequency and friction, fitted to measurements by Newton's method: conjugate gradients solve H d = g and
# need only products of the Hessian H with vectors.
import torch

torch.set_default_dtype(torch.float64)
torch.manual_seed(0)


def simulate(p):
    angle, speed = torch.ones(()), torch.zeros(())
    angles = []
    for i in range(60):
        speed = speed - 0.05 * (p[0] * torch.sin(angle) + p[1] * speed)
        angle = angle + 0.05 * speed
        angles.append(angle)
    return torch.stack(angles)


measured = simulate(torch.tensor([4, 0.5])) + 0.02 * torch.randn(60)
p = torch.tensor([3, 0.2])
for step in range(6):
    p.requires_grad_()
    loss = torch.nn.functional.mse_loss(simulate(p), measured)
    (g,) = torch.autograd.grad(loss, p, create_graph=True)
    d, r = torch.zeros_like(p), g.detach()
    q = r
    for i in range(2):
        (Hq,) = torch.autograd.grad(g, p, q, retain_graph=True)
        rr = (r * r).sum()
        alpha = rr / (q * Hq).sum()
        d, r = d + alpha * q, r - alpha * Hq
        q = r + (r * r).sum() / rr * q
    p = (p - d).detach()
    print(step, loss.item(), "p =", " ".join(f"{v:.6f}" for v in p.tolist()))
