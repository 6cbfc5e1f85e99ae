"""Writes tests/data/pytorch_rows.txt: what PyTorch gives for the rows of docs/from_pytorch.md.

    {python of PyTorch 2} make_pytorch_rows.py > pytorch_rows.txt

A line: the left cell of the row, a tab, the shape, a tab, the elements. tests/nn_backend/from_pytorch_test.cpp computes the right cells, from the
same inputs.
"""
import torch
import torch.nn.functional as F


def input(*shape, seed=0):
    """Multiples of 1/4, which every dtype holds."""
    n = 1
    for size in shape:
        n *= size
    return ((torch.arange(n, dtype=torch.float64) * 7 + seed) % 11 - 5).reshape(shape) / 4


m, p, v = input(2, 3), input(3, 4, seed=1), input(4)
b, c = input(2, 3, 4), input(2, 4, 5, seed=2)
logits, ids, bits = input(3, 4, seed=3), torch.tensor([1, 0, 3]), torch.tensor([[0., 1, 1, 0], [1, 0, 1, 1], [0, 0, 1, 0]], dtype=torch.float64)
w = input(3, 4, seed=5).requires_grad_()
(w ** 3).sum().backward()
image, weight, bias = input(2, 3, 6, 6), input(4, 3, 3, 3, seed=1), input(4, seed=2)
transposed = input(3, 4, 4, 4, seed=1)
depthwise = input(6, 1, 3, 3, seed=1)

ROWS = {
    "`x @ y`, `torch.matmul` of matrices": lambda: m @ p,
    "`x @ y`, `torch.bmm` of three axes and more": lambda: b @ c,
    "`x.view(-1, 2)`": lambda: b.view(-1, 2),
    "`x.permute(2, 0, 1)`": lambda: b.permute(2, 0, 1),
    "`x.unsqueeze(1)`, `x.squeeze(1)`": lambda: m.unsqueeze(1),
    "`torch.cat([x, y], dim=0)`": lambda: torch.cat([m, 2 * m], dim=0),
    "`torch.stack([x, y])`": lambda: torch.stack([m, 2 * m]),
    "`torch.where(c, a, b)`": lambda: torch.where(m > 0, m, 2 * m),
    "`x.sum()`, `x.mean()`, `x.sum(dim=1)`": lambda: b.sum(dim=1),
    "`x.max(dim=1)`": lambda: b.max(dim=1).values,
    "`x.std()`, `x.var()`": lambda: b.std(),
    "`x.std(correction=0)`": lambda: b.std(correction=0),
    "`x.argmax()`": lambda: b.argmax(),
    "`x.argmax(dim=1)`": lambda: b.argmax(dim=1),
    "`x.cumsum(dim=1)`": lambda: b.cumsum(dim=1),
    "`x.clamp(a, b)`": lambda: b.clamp(-0.5, 0.75),
    "`torch.sqrt(x)`": lambda: torch.sqrt(b.abs()),
    "`loss.backward(); w.grad`": lambda: w.grad,
    "`F.softmax(x, dim=1)`": lambda: F.softmax(b, dim=1),
    "`F.log_softmax(x, dim=1)`": lambda: F.log_softmax(b, dim=1),
    "`F.leaky_relu(x, 0.1)`, `F.elu(x)`": lambda: F.leaky_relu(b, 0.1),
    "`F.hardsigmoid(x)`": lambda: F.hardsigmoid(b),
    "`F.normalize(x, dim=1)`": lambda: F.normalize(b, dim=1),
    "`F.one_hot(i, 5)`": lambda: F.one_hot(ids, 5),
    "`F.embedding(i, w)`": lambda: F.embedding(ids, input(5, 2)),
    "`F.mse_loss(x, t)`": lambda: F.mse_loss(logits, bits),
    "`F.cross_entropy(logits, ids)`": lambda: F.cross_entropy(logits, ids),
    "`F.nll_loss(log_p, ids)`": lambda: F.nll_loss(F.log_softmax(logits, 1), ids),
    "`F.binary_cross_entropy_with_logits(x, t)`": lambda: F.binary_cross_entropy_with_logits(logits, bits),
    "`F.binary_cross_entropy(p, t)`": lambda: F.binary_cross_entropy(torch.sigmoid(logits), bits),
    "`F.conv2d(x, w, b)`": lambda: F.conv2d(image, weight, bias),
    "`padding=1`": lambda: F.conv2d(image, weight, padding=1),
    "`padding=\"same\"`": lambda: F.conv2d(image, weight, padding="same"),
    "`groups=c`": lambda: F.conv2d(image, depthwise, groups=3),
    "`F.max_pool2d(x, 2)`": lambda: F.max_pool2d(image, 2),
    "`F.avg_pool2d(x, 3, 1, padding=1)`": lambda: F.avg_pool2d(image, 3, 1, padding=1, count_include_pad=False),
    "`F.conv_transpose2d(x, w, stride=2, padding=1)`, w of 4 x 4": lambda: F.conv_transpose2d(image, transposed, stride=2, padding=1),
    "`F.interpolate(x, scale_factor=2)`": lambda: F.interpolate(image, scale_factor=2),
}

print(f"# Written by make_pytorch_rows.py, which says how to read it, with PyTorch {torch.__version__.split('+')[0]}.")
for row, compute in ROWS.items():
    result = compute().detach().to(torch.float64)
    print(row, ",".join(map(str, result.shape)), " ".join("%.12g" % x for x in result.contiguous().view(-1).tolist()), sep="\t")
