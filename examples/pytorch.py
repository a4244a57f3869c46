#!/usr/bin/env python3
"""The other half of pytorch.cpp: trains two small models in PyTorch and writes them to data/pytorch.

    python3 examples/pytorch.py        # needs torch, transformers and safetensors

digits.pt          a convolutional network on data/digits, as a training loop saves it: {"epoch", "model", "optimizer", …}
gpt2.safetensors   a GPT-2 of transformers on data/austen, letter by letter, with the Hub's names, in half precision
"""

import pathlib

import numpy
import safetensors.torch
import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
OUT = DATA / "pytorch"


def idx(name, shape):
    raw = (DATA / "digits" / f"{name}.idx").read_bytes()
    return torch.from_numpy(numpy.frombuffer(raw, numpy.uint8, offset=4 + 4 * raw[3]).copy()).view(shape)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                                      nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Linear(16 * 3 * 3, 10)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def digits():
    images, labels = idx("train-images", (-1, 1, 14, 14)) / 255, idx("train-labels", (-1,)).long()
    test_images, test_labels = idx("test-images", (-1, 1, 14, 14)) / 255, idx("test-labels", (-1,)).long()
    net = nn.DataParallel(Net())  # puts "module." before every name
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    epochs = 6
    for epoch in range(epochs):
        net.train()
        for some in torch.randperm(len(images)).split(50):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(images[some]), labels[some]).backward()
            optimizer.step()
    net.eval()
    with torch.no_grad():
        logits = net(test_images)
    accuracy = (logits.argmax(1) == test_labels).double().mean().item()
    torch.save({"epoch": epochs, "model": net.state_dict(), "optimizer": optimizer.state_dict(), "accuracy": accuracy,
                "logits": logits[:8].clone()}, OUT / "digits.pt")
    print(f"digits.pt: accuracy {accuracy:.4f}")


def gpt2(steps=1500, context=64):
    text = (DATA / "austen" / "pride-and-prejudice.txt").read_text()
    letters = sorted(set(text))
    numbers = {letter: i for i, letter in enumerate(letters)}
    ids = torch.tensor([numbers[letter] for letter in text])
    training = ids[:len(ids) * 9 // 10]
    net = GPT2LMHeadModel(GPT2Config(vocab_size=len(letters), n_positions=context, n_embd=36, n_layer=2, n_head=3,
                                     embd_pdrop=0, attn_pdrop=0, resid_pdrop=0))
    optimizer = torch.optim.AdamW(net.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps, cycle_momentum=False)
    for step in range(steps):
        begin = torch.randint(0, len(training) - context, (32, 1))
        batch = training[begin + torch.arange(context + 1)]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(batch[:, :-1]).logits.flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1)
        optimizer.step()
        schedule.step()
    halved = net.half().float().eval()
    sample = ids[:context].unsqueeze(0)
    with torch.no_grad():
        logits = halved(sample).logits
    state = {name: x.half().clone() for name, x in halved.state_dict().items()}
    safetensors.torch.save_file(state | {"test.ids": sample, "test.logits": logits[:, -2:].clone()}, OUT / "gpt2.safetensors",
                                {"format": "pt"})
    print(f"gpt2.safetensors: loss {loss.item():.3f}")


if __name__ == "__main__":
    torch.manual_seed(1)
    OUT.mkdir(exist_ok=True)
    digits()
    gpt2()
