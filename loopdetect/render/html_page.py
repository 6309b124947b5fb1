"""One self-contained page: styles and script are inside it, and nothing else may run or load.

How this works: a Content-Security-Policy names the hashes of the one style sheet and the one
script, so that whatever a log smuggles in stays text. Every value is freed of control characters
first and then escaped, without the template asking for it.
"""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loopdetect import __version__
from loopdetect.render.duration import spoken
from loopdetect.render.escape import visible
from loopdetect.render.width import cut

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER: Final = Path(__file__).parent / "html"
LINE_CUT: Final = 2000
NAME_CUT: Final = 300


def page(template: str, **values: object) -> str:
    """Return a page; `values` are what the template names."""
    style, script = _asset("style.css"), _asset("page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    from markupsafe import Markup

    return (
        _environment()
        .get_template(template)
        .render(
            style=Markup(style),  # our own files, no text from outside
            script=Markup(script),
            policy=policy,
            version=__version__,
            **values,
        )
    )


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["line"] = lambda text: cut(visible(text.rstrip()), LINE_CUT)
    environment.filters["name"] = lambda text: cut(visible(text), NAME_CUT)
    environment.filters["flat"] = lambda text, most=LINE_CUT: cut(
        visible(" ".join(text.split())), most
    )
    environment.filters["at"] = lambda number: f"{number:.2f}".rstrip("0").rstrip(".")
    environment.filters["spoken"] = spoken
    return environment


def _shown(value: object) -> object:
    """Free text of what a reader would not see, or a browser would obey."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return visible(value)
    return value


@lru_cache(maxsize=4)
def _asset(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
