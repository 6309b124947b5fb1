"""Progress bars as data: tqdm in its forms, vLLM's and SGLang's variants, rich, numbered lines, dots."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from loopdetect.core.late import Late
from loopdetect.model import Shared

# Every bar that is looked for holds one of these.
BAR_LITERALS: Final = ("it/s", "s/it", "B/s]", "% Completed | ", "━━━━", "] -- ETA", "] -- Took")
_NUMBER: Final = r"\d+(?:\.\d+)?[kMGTPEZ]?i?B?"
_CLOCK: Final = r"-?\d{1,5}:\d\d(?::\d\d)?"
_TQDM: Final = re.compile(
    rf"(?P<label>[^\r\n|]{{0,200}}?)(?P<pct>\d{{1,3}})%(?: Completed)? ?\|(?:[^|\r\n]{{0,300}}\|)? ?"
    rf"(?P<done>{_NUMBER})/(?P<total>{_NUMBER}|\?) \[(?P<elapsed>{_CLOCK})<(?P<remaining>{_CLOCK}|\?), *"
    r"(?P<rate>\?|[\d.]+[kMGTPEZ]?)(?P<unit>[^\],\r\n]{0,24})(?:, [^\]\r\n]{0,200})?\]?"
)
_COUNT: Final = Late(
    rf"(?P<label>[^\r\n|%]{{1,200}}?): (?P<done>{_NUMBER})[a-z]{{2,9}} \[(?P<elapsed>{_CLOCK}), *[\d.?]+[^\]\r\n]{{0,24}}\]"
)
_PERCENT: Final = Late(
    r"(?P<label>[A-Z][\w /-]{3,80}): +(?P<pct>\d{1,3})% \((?P<done>\d+)/(?P<total>\d+)\)"
)
_NUMBERED: Final = Late(
    r"(?P<label>Download|Convert|Downloading|Converting): \[(?P<done>\d+)/(?P<total>\d+)\] -- (?:ETA|Took): (?P<elapsed>[\d:.]+)"
)
_RICH: Final = Late(
    r"(?P<label>[^\r\n━╸╺]{0,120}?) *[━╸╺-]{5,} +(?P<pct>\d{1,3})% (?:(?P<elapsed>\d:\d\d:\d\d)|-:--:--)"
)
_DOTS: Final = re.compile(r"\.{4,100}")
_SCALE: Final = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18, "Z": 1e21}


@dataclass(frozen=True, slots=True)
class Bar(Shared):
    """One state of a bar; `label` is without what changes at every step."""

    label: str
    done: float
    total: float | None
    elapsed_s: float | None
    remaining_s: float | None

    @property
    def finished(self) -> bool:
        """True when the last step was reported (a rounded 100 % is not enough)."""
        return self.total is not None and self.done >= self.total

    @property
    def at_zero(self) -> bool:
        """True for the first state of a fresh bar: nothing done and no time spent."""
        return self.done == 0 and not self.elapsed_s

    @property
    def shape(self) -> tuple[str, float, float | None]:
        """What stays the same when only timings differ."""
        return self.label, self.done, self.total


def find_bar(text: str) -> tuple[Bar, int, int] | None:
    """Return the first bar in `text` with its start and end, or None."""
    if "%" in text:
        match = _TQDM.search(text) if "|" in text and "<" in text else None
        if match:
            return _bar(match), match.start(), match.end()
        match = _PERCENT.search(text) if "% (" in text else None
        if match is None and ("━" in text or "-----" in text):
            match = _RICH.search(text)
        if match:
            return _bar(match), match.start(), match.end()
    if "] -- " in text:
        match = _NUMBERED.search(text)
        if match:
            return _bar(match), match.start(), match.end()
    if " [" in text and "it/s" in text:
        match = _COUNT.search(text)
        if match:
            return _bar(match), match.start(), match.end()
    return None


def leading_dots(text: str) -> int:
    """Return how many characters of `text` are llama.cpp's load dots (0 when it starts otherwise)."""
    match = _DOTS.match(text)
    return match.end() if match else 0


def clean_label(raw: str) -> str:
    """Cut what changes at every step from a bar's description."""
    label = raw.strip().removesuffix(":").strip()
    if "(" in label and "=" in label:
        label = label.split("(", 1)[0].strip()
    return label


def _bar(match: re.Match[str]) -> Bar:
    groups = match.groupdict()
    total = None if groups.get("total") in (None, "?") else _value(groups["total"])
    if "done" in groups:
        done = _value(groups["done"])
    else:
        done, total = float(groups["pct"]), 100.0
    return Bar(
        label=clean_label(groups["label"] or ""),
        done=done,
        total=total,
        elapsed_s=_seconds(groups.get("elapsed")),
        remaining_s=_seconds(groups.get("remaining")),
    )


def _value(text: str) -> float:
    text = text.rstrip("iB")
    return float(text[:-1]) * _SCALE[text[-1]] if text[-1:] in _SCALE else float(text)


def _seconds(text: str | None) -> float | None:
    if text is None or text == "?":
        return None
    total = 0.0
    for part in text.lstrip("-").split(":"):
        total = total * 60 + float(part or 0)
    return -total if text.startswith("-") else total
