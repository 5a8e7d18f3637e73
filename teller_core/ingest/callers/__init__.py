"""What callers measured, and tables of arrivals."""
