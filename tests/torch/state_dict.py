"""Prints what Python's torch.load, with its default arguments, finds in a file."""

import sys

import torch

for name, tensor in torch.load(sys.argv[1]).items():
    print(name, str(tensor.dtype), list(tensor.shape), tensor.double().sum().item())
