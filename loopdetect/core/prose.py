"""Somebody's sentence that quotes what a program says, in a paste where prose stands between log lines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from loopdetect.core.late import Late
from loopdetect.model import Kind

KINDS: Final = frozenset({Kind.FAILURE, Kind.CASCADE, Kind.STOP, Kind.EXIT, Kind.GAVE_UP})
_TYPE: Final = r"(?:\w+\.)*\w*(?:Error|Exception|Interrupt)(?:\([\w.]*\))?: "
# Words and nothing else: a program has a colon, a bracket or an equals sign before what it quotes.
# Without a mark of quotation, only somebody who speaks of himself or of what he sees is no program.
_SENTENCE: Final = Late(
    r"[ \t]*(?:[-*] )?(?:"
    r"(?:[A-Za-z][A-Za-z'’]*,? +){2,}(?:(?P<mark>[`\"“«])"
    r"|(?<=(?:.and|gets|.get|.got|sees|.see|.saw|hows|with|ting) )(?=" + _TYPE + r"))"
    r"|(?:[A-Za-z][A-Za-z'’]*[,:]? +)*(?P<code>`))"
)
_CLOSES: Final = {"`": "`", '"': '"', "“": "”", "«": "»"}


def mentions(text: str, literals: Iterable[str]) -> bool:
    """True where the first of `literals` in `text` is only quoted by a sentence."""
    sentence = _SENTENCE.match(text)
    if sentence is None:
        return False
    at = min((place for place in map(text.find, literals) if place >= 0), default=-1)
    begin = sentence.end()
    mark = sentence["mark"] or sentence["code"]
    return at >= begin and (mark is None or _CLOSES[mark] not in text[begin:at])
