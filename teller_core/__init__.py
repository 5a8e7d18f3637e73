"""TELLER: why was this request slow? The core library."""
