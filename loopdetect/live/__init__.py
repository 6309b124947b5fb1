"""Waiting for one server: the log as it grows, probes beside it, and the moment to answer."""
