"""Answers about recording a running service: what ``capture`` left, and what others say of recordings."""
