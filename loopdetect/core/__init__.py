"""The core: bytes in, reports out. It opens nothing, prints nothing and has no clock."""
