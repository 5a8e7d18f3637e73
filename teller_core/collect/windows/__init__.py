"""When the profiler of a service is switched on, for how long, and by whom it was asked."""
