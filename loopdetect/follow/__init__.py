"""Follows logs as they grow and tells what happens."""
