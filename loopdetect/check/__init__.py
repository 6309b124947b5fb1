"""Logs held against what is expected of them."""
