"""Workloads, real faults and the benchmark."""
