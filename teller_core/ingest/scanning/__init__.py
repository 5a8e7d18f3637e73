"""Bytes scanned by compiled code: what readers of traces share."""
