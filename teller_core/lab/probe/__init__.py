"""Whether the benchmark's lives give away what was done in them by anything but what it did."""
