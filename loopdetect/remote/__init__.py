"""A log, a process and a port on another machine, seen through the user's own `ssh`."""
