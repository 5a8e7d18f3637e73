"""Findings in, words and pictures out."""
