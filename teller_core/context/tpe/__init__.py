"""Trace Pair Encoding: a tree of calls as a short sequence of tokens."""
