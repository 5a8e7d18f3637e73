"""What Prometheus reads from a service, as pages or as answers of its API."""
