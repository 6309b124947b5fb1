"""The numbers that decide what a crash loop and a stall are, as options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeVar

import click

from loopdetect.cli.params import DURATION
from loopdetect.model import Policy

Command = TypeVar("Command", bound=Callable[..., Any])


def policy_options(command: Command) -> Command:
    """`--loop-after`, `--stable-after`, `--stall-after`: what `make_policy` takes."""
    command = click.option(
        "--stall-after",
        type=DURATION,
        default=None,
        help="How long nothing may advance; compile (45m) and graph-capture (15m) keep a longer "
        "limit.  [default: 5m]",
    )(command)
    command = click.option(
        "--stable-after",
        type=DURATION,
        default=None,
        help="How long a run must serve to end a crash loop.  [default: from the time to ready]",
    )(command)
    return click.option(
        "--loop-after",
        type=click.IntRange(min=2),
        default=None,
        metavar="N",
        help="Bad runs in a row, with one cause, that make a crash loop.  [default: 2]",
    )(command)


def make_policy(
    loop_after: int | None, stable_after: float | None, stall_after: float | None
) -> Policy:
    """Return the policy with the user's numbers; times in seconds."""
    policy = Policy(stable_after=stable_after)
    if loop_after is not None:
        policy = replace(
            policy,
            loop_after=loop_after,
            loop_after_mixed=max(loop_after, policy.loop_after_mixed),
            loop_after_transient=max(loop_after, policy.loop_after_transient),
        )
    if stall_after is not None:
        longer = {p: max(s, stall_after) for p, s in policy.stall_after_by_phase.items()}
        policy = replace(
            policy, stall_after=stall_after, stall_after_by_phase=MappingProxyType(longer)
        )
    return policy
