"""Synthetic faults on real recordings: steps that were recorded once, replayed with other durations, some of them struck."""
