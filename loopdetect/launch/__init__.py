"""Starting a server as a child process: its output, its signals, its end."""
