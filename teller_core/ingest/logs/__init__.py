"""Logs of engines and of what stands around them."""
