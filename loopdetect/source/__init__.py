"""Where bytes come from: files, pipes and compressed archives."""
