"""From paths to files: what belongs together, what is in an archive, who reads it."""
