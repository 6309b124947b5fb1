"""The options of the commands that wait for a server: `wait` and `run`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from loopdetect.cli.exit_codes import ExitCode
from loopdetect.cli.lazy import CodedCommand
from loopdetect.cli.params import DURATION
from loopdetect.model import State

GOALS: Final = tuple(state.value for state in State if state is not State.UNKNOWN)
Command = TypeVar("Command", bound=Callable[..., Any])


class Pattern(click.ParamType[re.Pattern[str]]):
    """A regular expression."""

    name = "regex"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> re.Pattern[str]:
        """Return it compiled."""
        if isinstance(value, re.Pattern):
            return value
        try:
            return re.compile(str(value))
        except re.error as problem:
            self.fail(f"{str(value)!r} is not a regular expression: {problem}", param, ctx)


class WaitCommand(CodedCommand):
    """Shows all codes that a wait can end with."""

    codes = (
        ExitCode.OK,
        ExitCode.FINDING,
        ExitCode.UNABLE,
        ExitCode.BUG,
        ExitCode.UNDECIDED,
        ExitCode.LOOPING,
        ExitCode.STALLED,
        ExitCode.TIME_LIMIT,
        ExitCode.INTERRUPTED,
        ExitCode.TERMINATED,
    )


HEALTH: Final = (
    click.option(
        "--health",
        metavar="URL",
        help="Ask this URL too; any 2xx counts, the body does not. Also unix:/run/x.sock:/health.",
    ),
    click.option(
        "--health-token-env",
        "token_env",
        metavar="NAME",
        help="The environment variable that holds the bearer token for the health URL.",
    ),
    click.option("--health-ca", "ca_file", metavar="FILE", help="Trust these certificates."),
    click.option("--health-insecure", "insecure", is_flag=True, help="Trust any certificate."),
    click.option(
        "--interval",
        type=DURATION,
        default="1s",
        show_default=True,
        help="How often to ask the health URL; the log is looked at all the time.",
    ),
)
GOAL: Final = (
    click.option(
        "--until",
        type=click.Choice(GOALS),
        default="ready",
        show_default=True,
        help="What to wait for.",
    ),
    click.option(
        "--timeout",
        type=DURATION,
        default="15m",
        show_default=True,
        help="The hard limit, whatever still moves.",
    ),
    click.option(
        "--stall",
        type=DURATION,
        help="How long nothing may advance; compile (45m) and graph-capture (15m) keep a longer "
        "limit.  [default: 5m]",
    ),
    click.option(
        "--settle",
        type=DURATION,
        default="0s",
        show_default=True,
        help="How long ready must hold before it counts.",
    ),
    click.option(
        "--tolerate",
        type=click.IntRange(min=0),
        metavar="N",
        help="Give up only after more than N crashes.  [default: at a crash that nothing follows, "
        "or at a crash loop]",
    ),
    click.option(
        "--ready-on-line",
        "ready_line",
        type=Pattern(),
        metavar="REGEX",
        help="A line that says ready, for a server that is not known.",
    ),
    click.option(
        "--fail-on-line",
        "fail_line",
        type=Pattern(),
        metavar="REGEX",
        help="A line that says that it is hopeless.",
    ),
)


def health_options(command: Command) -> Command:
    """`--health` and what belongs to it."""
    return _all(HEALTH, command)


def goal_options(command: Command) -> Command:
    """What is waited for, how long, and what counts."""
    return _all(GOAL, command)


def _all(options: tuple[Callable[[Command], Command], ...], command: Command) -> Command:
    for option in reversed(options):
        command = option(command)
    return command
