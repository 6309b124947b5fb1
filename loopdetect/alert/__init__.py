"""Tells people and programs of what happened: a command, a webhook."""
