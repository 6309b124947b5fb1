"""Keeps what must outlive a watcher."""
