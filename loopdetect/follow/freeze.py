"""A detector's state as bytes, and back: for a look that ends nothing, and for a restart.

What is compiled from profiles is left out and found again by name, so the bytes are small, and a
state can go on under profiles that were read anew. Only classes of the core are ever loaded.
"""

from __future__ import annotations

import copyreg
import hashlib
import io
import pickle
import sys
import zlib
from collections.abc import Callable
from enum import Enum
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

from loopdetect import __version__
from loopdetect.core.detector import Detector
from loopdetect.core.recognise import IdentifyRules
from loopdetect.core.rules import Chain
from loopdetect.core.search import Search, search_of
from loopdetect.model import Policy
from loopdetect.profiles import Library, Rule

Recall = Callable[..., Any]
# What each new detector makes for itself; see `thaw`.
FRESH: Final = ("_search", "_source", "_policy", "_library")
_SAFE: Final = frozenset(
    {
        ("collections", "Counter"),
        ("collections", "OrderedDict"),
        ("collections", "deque"),
        ("builtins", "set"),
        ("builtins", "frozenset"),
        ("builtins", "bytearray"),
        ("re", "_compile"),
        ("_codecs", "encode"),
    }
)
_OURS: Final = ("loopdetect.core.", "loopdetect.model")


class Unusable(Exception):
    """The bytes are damaged, or of another version of loopdetect or its profiles."""


def freeze(detector: Detector) -> bytes:
    """Return the detector's state; raises Unusable."""
    out = io.BytesIO()
    pickler = pickle.Pickler(out, protocol=5)
    pickler.dispatch_table = _TABLE
    try:
        pickler.dump(detector)
    except (TypeError, AttributeError, pickle.PicklingError, RecursionError) as problem:
        raise Unusable(str(problem)) from problem
    return zlib.compress(out.getvalue(), 1)


@lru_cache(maxsize=1)
def maker() -> str:
    """Name the code that makes states: another one's states are not to be loaded."""
    package = Path(__file__).parent.parent
    files = sorted([*package.glob("core/*.py"), package / "model.py"])
    sizes = " ".join(f"{file.name}:{file.stat().st_size}" for file in files)
    text = f"{__version__} {sys.version_info[:2]} {sizes}"
    return f"{__version__}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def thaw(
    data: bytes, library: Library, policy: Policy, source: str, profile: str | None = None
) -> Detector:
    """Return a detector that goes on where the frozen one stood; raises Unusable."""
    try:
        reader = _Reader(io.BytesIO(zlib.decompress(data)))
    except zlib.error as problem:
        raise Unusable(str(problem)) from problem
    reader.given = {"library": library, "policy": policy, "source": source, "profile": profile}
    try:
        detector = reader.load()
    except Exception as problem:
        raise Unusable(str(problem)) from problem
    if not isinstance(detector, Detector):
        raise Unusable("not a detector")
    return detector


class _Reader(pickle.Unpickler):
    """Loads the classes of the core and nothing else."""

    given: dict[str, Any]

    def find_class(self, module: str, name: str) -> Any:
        """Return a class that a state may hold."""
        if module == __name__ and name in _RECALLS:
            return lambda *key: _RECALLS[name](self.given, *key)
        if (module, name) == ("builtins", "getattr"):
            return member  # how the first releases of Python 3.11 write a member of an enum
        if (module, name) in _SAFE:
            return super().find_class(module, name)
        if module.startswith(_OURS) and name.isidentifier():
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__ == module:
                return found
        raise Unusable(f"{module}.{name} has no place in a state")


def member(kind: Any, name: str) -> Enum:
    """Return a member of an enum of ours; raises Unusable for anything else."""
    if isinstance(kind, type) and issubclass(kind, Enum) and name in kind.__members__:
        return kind[name]
    raise Unusable(f"{kind!r}.{name} has no place in a state")


def recall_detector(given: dict[str, Any]) -> Detector:
    """Return a new detector for the state to be put into."""
    return Detector(
        given["library"], given["policy"], source=given["source"], profile=given["profile"]
    )


def recall_library(given: dict[str, Any]) -> Library:
    """Return the library in force."""
    library: Library = given["library"]
    return library


def recall_policy(given: dict[str, Any]) -> Policy:
    """Return the policy in force."""
    policy: Policy = given["policy"]
    return policy


def recall_rule(given: dict[str, Any], rule_id: str) -> Rule:
    """Return the rule of that name; raises Unusable."""
    owner = rule_id.split("/", 1)[0]
    profile = given["library"].profiles.get(owner)
    for rule in profile.rules if profile else ():
        if rule.id == rule_id:
            found: Rule = rule
            return found
    raise Unusable(f"there is no rule {rule_id}")


def recall_chain(given: dict[str, Any], names: tuple[str, ...]) -> Chain:
    """Return the rule sets of these profiles, made once a library."""
    library: Library = given["library"]
    known = _chains.get(id(library))
    if known is None or known[0] is not library:
        _chains.clear()
        known = _chains[id(library)] = (library, {})
    if names not in known[1]:
        known[1][names] = Chain(library, names)
    return known[1][names]


def recall_search(given: dict[str, Any]) -> Search:
    """Return the search in force."""
    return search_of(given["library"])


def recall_identify(given: dict[str, Any]) -> IdentifyRules:
    """Return the rules that tell which server it is."""
    return search_of(given["library"]).identify


def recall_nothing(given: dict[str, Any]) -> None:
    """Stand for a look back into bytes that are gone."""


_chains: dict[int, tuple[Library, dict[tuple[str, ...], Chain]]] = {}
_ALL: Final[tuple[Recall, ...]] = (
    recall_detector,
    recall_library,
    recall_policy,
    recall_rule,
    recall_chain,
    recall_search,
    recall_identify,
    recall_nothing,
)
_RECALLS: Final[dict[str, Recall]] = {function.__name__: function for function in _ALL}


def _detector(detector: Detector) -> tuple[Any, ...]:
    kept = {name: value for name, value in vars(detector).items() if name not in FRESH}
    return recall_detector, (), kept


_TABLE: Final[dict[type, Callable[[Any], Any]]] = {
    **copyreg.dispatch_table,
    Detector: _detector,
    Library: lambda _: (recall_library, ()),
    Policy: lambda _: (recall_policy, ()),
    Rule: lambda rule: (recall_rule, (rule.id,)),
    Chain: lambda chain: (recall_chain, (chain.names,)),
    partial: lambda _: (recall_nothing, ()),
    Search: lambda _: (recall_search, ()),
    IdentifyRules: lambda _: (recall_identify, ()),
}
