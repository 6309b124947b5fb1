"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from loopdetect.cli.output import COLOR_CHOICES
from loopdetect.cli.params import MOMENT

Command = TypeVar("Command", bound=Callable[..., Any])


def format_option(*formats: str) -> Callable[[Command], Command]:
    """`--format`, the first one being the default."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="How to write it.",
    )


def output_options(command: Command) -> Command:
    """`-o`, `--color`."""
    command = click.option(
        "--color",
        type=click.Choice(COLOR_CHOICES),
        default="auto",
        show_default=True,
        help="Colours; auto also heeds NO_COLOR and TERM=dumb.",
    )(command)
    return click.option(
        "-o",
        "--output",
        metavar="FILE",
        default=None,
        help="Write to FILE, replaced in one step, instead of standard output.",
    )(command)


def detail_options(command: Command) -> Command:
    """`-q`, `-v`."""
    command = click.option(
        "-v", "--verbose", is_flag=True, help="Every run, bar and evidence line."
    )(command)
    return click.option("-q", "--quiet", is_flag=True, help="One line a stream, no progress bar.")(
        command
    )


def profile_option(command: Command) -> Command:
    """`--profile`, repeatable."""
    return click.option(
        "--profile",
        "profiles",
        multiple=True,
        metavar="NAME_OR_FILE",
        help="A server's name says which server it is; a TOML file adds a profile. Repeatable.",
    )(command)


def now_option(command: Command) -> Command:
    """`--now`."""
    return click.option(
        "--now",
        type=MOMENT,
        default=None,
        metavar="TIME",
        help="The time it is, for a log that may have stood still since its last line: an ISO time "
        "on the log's own clock, or seconds since 1970. With Z or +02:00 it is taken to UTC.",
    )(command)
