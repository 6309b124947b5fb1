"""Evidence beside the log: is a URL healthy, is a process alive."""
