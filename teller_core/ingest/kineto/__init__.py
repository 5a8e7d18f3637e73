"""Traces of the PyTorch profiler, scanned by compiled code."""
