"""Files in, traces, log lines and records out."""
