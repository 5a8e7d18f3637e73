"""A running service in, a bundle on disk out."""
