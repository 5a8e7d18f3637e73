"""Execution traces, and the sample folders of the paper."""
