"""Tests on CUDA tensors without a GPU: MESHCOLL_TEST_DOUBLE names the module that plays a CUDA device for torch, on the
double of libcuda (double/double.cpp). Each rank has a GPU of FAKE_GPUS."""

import importlib.util
import os

import torch

TYPE = "cuda" if os.environ.get("MESHCOLL_TEST_DOUBLE") else "cpu"
double = None


def install(rank):
    """From now on tensors are on the rank's GPU, where nothing else is said."""
    global double
    spec = importlib.util.spec_from_file_location("_double", os.environ["MESHCOLL_TEST_DOUBLE"])
    double = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(double)
    torch.cuda._lazy_init = lambda: None  # torch.cuda itself has no driver
    torch.cuda.get_device_capability = lambda _: (9, 0)
    torch.cuda.current_device = lambda: number
    torch._C._get_accelerator = lambda: torch.device("cuda", number)
    number = rank % int(os.environ.get("FAKE_GPUS", "16"))
    double.set_device(number)
    torch.set_default_device(f"cuda:{number}")
