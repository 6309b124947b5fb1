"""What is watched, as numbers for Prometheus."""
