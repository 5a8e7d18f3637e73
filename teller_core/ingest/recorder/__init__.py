"""What our own recorder writes."""
