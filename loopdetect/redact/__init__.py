"""Logs that can be shown to others: secrets and names replaced, everything else as it was."""
