"""Compiles the profiles, and chooses the anchors that stand for their literals in the search.

    python bench/anchors.py            write profiles/compiled.jsonl and core/anchors.json
    python bench/anchors.py --check    exit 1 if they are not those of the shipped profiles

Anchors are chosen against what servers print all day (made by bench/logs.py, the samples of
harmless rules, prose). First a small set of pieces that covers all literals and is rare in that
noise, then an order in which the search makes few false starts: it looks at four bytes by their
halves, in 8 or 16 buckets, and the n-th text goes into bucket n modulo their number.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

import logs

from loopdetect.core.prefilter import PER_AUTOMATON, PLANS, Prefilter, buckets_of
from loopdetect.core.recognise import Unknown
from loopdetect.core.search import Aim, Search
from loopdetect.model import Kind
from loopdetect.profiles import ALWAYS, SHIPPED, Library, compiled, load_library

ROOT: Final = Path(__file__).parent.parent
SHARE: Final = 400_000
COMMON: Final = 3000
ROUNDS: Final = 1500
TRIES: Final = 60
SEEDS: Final = 2
# How much less texts weigh that may come than those that come all day.
RARE: Final = 100
# How much more bars weigh, of which a log of loading is made, in the search for what comes then.
BARS: Final = 50
# What a pass over a megabyte costs, and a line that is looked at for nothing, in microseconds.
PASS: Final = 110
ALARM: Final = 1
# How many anchors too many are worth a search for a set that needs a pass less, how long that
# search is, and how often its anchors may come.
NEARLY: Final = 24
SWAPS: Final = 30_000
CALM: Final = 20
CARES: Final = (0.3, 0.1, 0.05, 0.03, 0.02, 0.01, 0.005, 0.002)
LONGEST: Final = 8


def sample(parts: Iterable[str], size: int = SHARE) -> bytes:
    """Return the first bytes of a generated text."""
    written, kept = 0, []
    for part in parts:
        kept.append(part)
        written += len(part)
        if written > size:
            break
    return "".join(kept).encode()


def work(name: str, *, prompts: bool, seed: int) -> bytes:
    """Return what a server prints while it serves."""
    server = logs.SERVERS[name](seed)
    server.begin()
    rounds = 40 if prompts else 120
    return b"".join(
        "".join(server.work(access=True, prompts=prompts)).encode() for _ in range(rounds)
    )[:SHARE]


def serving_noise(library: Library) -> tuple[list[bytes], list[bytes]]:
    """Return what comes all day (servers at work), and what may come (prompts, prose)."""
    told = [
        text.encode()
        for profile in library.profiles.values()
        for rule in profile.rules
        if rule.kind in (Kind.ALIVE, Kind.HARMLESS, Kind.REQUEST_ERROR)
        for text in rule.samples
    ]
    prose = b"\n".join(path.read_bytes() for path in sorted((ROOT / "docs").glob("*.md")))
    plain = [work(name, prompts=False, seed=7) for name in logs.SERVERS]
    wrapped = [
        sample(wrap(server, iter([text.decode()])), SHARE // 2)
        for wrap in (logs.cri, logs.journald)
        for server, text in [(logs.SERVERS["vllm"](3), plain[0][: SHARE // 2])]
    ]
    return [*plain, *wrapped], [work("vllm", prompts=True, seed=8), b"\n".join(told), prose]


def loading_noise() -> list[bytes]:
    """Return bars, as they come while a model loads."""
    found = []
    for kind in logs.SERVERS.values():
        server = kind(9)
        server.begin()
        found.append(sample(server.start(shards=900), SHARE // 2))
    return found


def pieces(texts: Sequence[bytes]) -> Counter[bytes]:
    """Count all four-byte pieces."""
    counts: Counter[bytes] = Counter()
    for text in texts:
        counts.update(text[i : i + 4] for i in range(len(text) - 3))
    return counts


class Noise:
    """How often pieces come, and how many false starts a bucket makes."""

    def __init__(self, counts: Counter[bytes]) -> None:
        self.counts = counts
        self.megabytes = counts.total() / 1e6
        self.classes: dict[int, int] = {}
        self.halves = [[[0] * 16 for _ in range(2)] for _ in range(4)]
        for number, (piece, times) in enumerate(counts.items()):
            bit = 1 << number
            weight = times.bit_length()
            self.classes[weight] = self.classes.get(weight, 0) | bit
            for place, byte in enumerate(piece):
                self.halves[place][0][byte & 15] |= bit
                self.halves[place][1][byte >> 4] |= bit

    def hits(self, window: bytes) -> int:
        """Return how often `window` comes, at most."""
        pieces = [window[i : i + 4] for i in range(max(1, len(window) - 3))]
        return min(self.counts[piece] for piece in pieces)

    def starts(self, bucket: Sequence[bytes]) -> int:
        """Return how often the search looks closer at a place because of the texts in a bucket."""
        left = -1
        for place in range(min(map(len, bucket))):
            if place == 4:
                break
            for half in range(2):
                known = self.halves[place][half]
                some = 0
                for nibble in {(text[place] >> 4) if half else text[place] & 15 for text in bucket}:
                    some |= known[nibble]
                left &= some
        return sum((left & bits).bit_count() << weight for weight, bits in self.classes.items())


def best(literals: Sequence[bytes], noise: Noise) -> list[bytes]:
    """Return the set of anchors that costs least: passes over the text, and false alarms."""
    holders: dict[bytes, frozenset[bytes]] = {}
    for literal in literals:
        for size in range(min(4, len(literal)), LONGEST + 1):
            for i in range(len(literal) - size + 1):
                window = literal[i : i + size]
                holders[window] = holders.get(window, frozenset()) | {literal}
    worst = {w: noise.hits(w) + noise.counts[w[:4]] / 10 for w in holders}

    def cost(anchors: list[bytes]) -> float:
        passes = -(-len(anchors) // PER_AUTOMATON)
        return passes * PASS + sum(map(noise.hits, anchors)) / noise.megabytes * ALARM

    found = min((chosen(literals, holders, worst, care) for care in CARES), key=cost)
    room = (len(found) - 1) // PER_AUTOMATON * PER_AUTOMATON
    if len(found) - room <= NEARLY:
        return min(found, fewer(found, holders, worst, room), key=cost)
    return found


def fewer(
    anchors: list[bytes],
    holders: Mapping[bytes, frozenset[bytes]],
    worst: Mapping[bytes, float],
    room: int,
    seed: int = 1,
) -> list[bytes]:
    """Return a set that fits into `room`, if one can be found by taking some out and choosing anew."""
    calm: dict[frozenset[bytes], bytes] = {}
    for window, held in sorted(
        holders.items(), key=lambda item: (worst[item[0]], -len(item[0]), item[0])
    ):
        if worst[window] <= CALM or window in anchors:
            calm.setdefault(held, window)
    holds = {window: held for held, window in calm.items()}
    windows: dict[bytes, list[bytes]] = {}
    for window, held in holds.items():
        for literal in held:
            windows.setdefault(literal, []).append(window)
    literals = sorted(windows)
    dice = random.Random(seed)
    best = [calm[holders[anchor]] for anchor in anchors]
    for _ in range(SWAPS):
        if len(best) <= room:
            break
        around = {held for w in windows[dice.choice(literals)] for held in holds[w]}
        near = [w for w in best if not holds[w].isdisjoint(around)]
        dice.shuffle(near)
        out = {*near[: dice.randrange(4, 16)], *dice.sample(best, 3)}
        kept = [w for w in best if w not in out]
        left = set(literals).difference(*(holds[w] for w in kept))
        new = _complete(kept, left, holds, windows, dice)
        if len(new) <= len(best):
            best = new
    return best


def _complete(
    kept: list[bytes],
    left: set[bytes],
    holds: Mapping[bytes, frozenset[bytes]],
    windows: Mapping[bytes, list[bytes]],
    dice: random.Random,
) -> list[bytes]:
    """Add windows until no literal is left, then drop those that the others make needless."""
    found = list(kept)
    while left:
        gains = Counter(w for literal in sorted(left) for w in windows[literal])
        most = max(gains.values())
        pick = dice.choice([w for w, gain in gains.items() if gain == most])
        found.append(pick)
        left -= holds[pick]
    times = Counter(literal for w in found for literal in holds[w])
    for window in sorted(found, key=lambda w: (len(holds[w]), dice.random())):
        if all(times[literal] > 1 for literal in holds[window]):
            found.remove(window)
            times.subtract(holds[window])
    return found


def chosen(
    literals: Sequence[bytes],
    holders: Mapping[bytes, frozenset[bytes]],
    worst: Mapping[bytes, float],
    care: float,
) -> list[bytes]:
    """Return a small set of windows such that each literal holds one, rare in the noise."""
    cost = {w: 1 + care * hits for w, hits in worst.items()}
    left, found = set(literals), []
    while left:
        pick = max(holders, key=lambda w: (len(holders[w]) / cost[w], -len(w), w))
        found.append(pick)
        left -= holders[pick]
        holders = {w: rest for w, held in holders.items() if (rest := held & left)}
    return found


def arranged(anchors: Sequence[bytes], noise: Noise) -> list[list[bytes]]:
    """Spread anchors over automata and buckets so that few false starts are made."""
    tries = (_arranged(anchors, noise, random.Random(seed)) for seed in range(SEEDS))
    return min(tries, key=lambda found: found[0])[1]


def _arranged(
    anchors: Sequence[bytes], noise: Noise, dice: random.Random
) -> tuple[int, list[list[bytes]]]:
    count = -(-len(anchors) // PER_AUTOMATON)
    width = buckets_of(-(-len(anchors) // count))
    ordered = sorted(anchors)
    # No bucket is more than one longer than another, or the texts behind the gap would go astray.
    least, more = divmod(len(ordered), width * count)
    buckets: list[list[bytes]] = []
    at = 0
    for number in range(width * count):
        size = least + (number < more)
        buckets.append(ordered[at : at + size])
        at += size
    cost = [noise.starts(bucket) if bucket else 0 for bucket in buckets]
    for _ in range(ROUNDS):
        a = max(range(len(buckets)), key=lambda n: cost[n] * dice.random())
        if not cost[a]:
            break
        for _ in range(TRIES):
            b = dice.randrange(len(buckets))
            if a == b or not buckets[b]:
                continue
            i, j = dice.randrange(len(buckets[a])), dice.randrange(len(buckets[b]))
            one, two = list(buckets[a]), list(buckets[b])
            one[i], two[j] = two[j], one[i]
            new = noise.starts(one), noise.starts(two)
            if sum(new) < cost[a] + cost[b]:
                buckets[a], buckets[b] = one, two
                cost[a], cost[b] = new
                break
    buckets.sort(key=len, reverse=True)
    groups = []
    for number in range(count):
        own = buckets[number::count]
        groups.append([b[row] for row in range(least + 1) for b in own if row < len(b)])
    return sum(cost), groups


def aims(library: Library) -> list[Aim]:
    """Return the aims for which anchors are stored."""
    found = [Aim(frozenset(library.profiles))]
    for name in sorted(library.profiles):
        chain = frozenset(p.name for n in (name, *ALWAYS) for p in library.lineage(n))
        found.append(Aim(chain, Unknown.ONLY_PROOF, alive=True))
        found.append(Aim(chain, Unknown.NOTHING, alive=False, serving=True))
    return found


def shipped() -> Library:
    """Return the library without what users added."""
    os.environ["LOOPDETECT_PROFILES"] = os.devnull
    return load_library()


def plans() -> dict[str, object]:
    """Choose anchors for every aim."""
    library = shipped()
    search = Search(library)
    daily, rare = serving_noise(library)
    serving = pieces(daily)
    for piece, times in pieces(rare).items():
        if times >= RARE:
            serving[piece] += times // RARE
    bars = pieces(loading_noise())
    everything = serving + bars
    quiet = Noise(serving)
    loud = Noise(serving + Counter({piece: times * BARS for piece, times in bars.items()}))
    found: dict[str, object] = {}
    for aim in aims(library):
        if aim.plan in found:
            continue
        noise = quiet if aim.serving else loud
        literals = Prefilter(partial(search.literals, aim)).literals
        found[aim.plan] = [
            [anchor.decode("latin-1") for anchor in group]
            for group in arranged(best(literals, noise), noise)
        ]
    common = [piece.decode("latin-1") for piece, _ in islice(everything.most_common(), COMMON)]
    return {"common": common, "plans": found}


def missing() -> list[str]:
    """Return the literals of shipped rules that no stored anchor of their aim stands for."""
    library = shipped()
    search = Search(library)
    stored = json.loads(PLANS.read_text("utf-8"))["plans"]
    found = []
    for aim in aims(library):
        anchors = [a.encode("latin-1") for group in stored.get(aim.plan, ()) for a in group]
        for literal in Prefilter(partial(search.literals, aim)).literals:
            if not any(anchor in literal for anchor in anchors):
                found.append(f"{aim.plan}: {literal.decode()}")
    return found


def main() -> int:
    """Write the anchors, or check them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        found = missing()
        if compiled.load(SHIPPED) is None:
            found.append("compiled.jsonl is older than the profiles")
        print("\n".join(found) or "all is up to date")  # noqa: T201
        return 1 if found else 0
    compiled.write(SHIPPED)
    text = json.dumps(plans(), separators=(",", ":"), ensure_ascii=True)
    PLANS.write_text(text.replace("]],", "]],\n") + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
