"""Tell from its log whether an LLM inference server is loading, ready or crash-looping, and why."""

__version__ = "0.1.0"
