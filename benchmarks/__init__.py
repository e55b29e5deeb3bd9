"""Ours against peers, on the same data, in one process and one run; see `python -m benchmarks --help`."""
