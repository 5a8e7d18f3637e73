"""Traces and records in, trees, steps and requests out."""
