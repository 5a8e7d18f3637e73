"""CUPTI on NVIDIA GPUs: what its records look like, and windows of them."""
