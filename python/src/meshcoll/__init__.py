"""meshcoll for Python: ``meshcoll.torch`` is a backend of torch.distributed."""
