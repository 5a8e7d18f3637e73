"""What can be recorded here, how to switch it on without us, and what became of a recording."""
