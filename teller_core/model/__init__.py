"""The root-cause model: a small network beside numbers and rules, and words that cannot lie."""
