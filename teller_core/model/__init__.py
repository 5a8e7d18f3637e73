"""The root-cause model."""
