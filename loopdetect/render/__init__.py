"""Reports as text: one module a format, found through one table."""

from __future__ import annotations

import importlib
from types import MappingProxyType
from typing import Final, cast

from loopdetect.render.options import Renderer, RenderOptions

__all__ = ["FORMATS", "RenderOptions", "Renderer", "renderer"]

# Format -> module and function, so that a format's imports are paid for only where it is used.
FORMATS: Final = MappingProxyType(
    {
        "text": ("loopdetect.render.to_text", "to_text"),
        "json": ("loopdetect.render.to_json", "to_json"),
        "jsonl": ("loopdetect.render.to_json", "to_jsonl"),
        "markdown": ("loopdetect.render.to_markdown", "to_markdown"),
        "html": ("loopdetect.render.to_html", "to_html"),
    }
)


def renderer(name: str) -> Renderer:
    """Return the renderer of a format in `FORMATS`."""
    module, function = FORMATS[name]
    return cast(Renderer, getattr(importlib.import_module(module), function))
