"""`loopdetect watch`: logs as they grow, and what happens as it happens."""

from __future__ import annotations

import click

from loopdetect.cli.exit_codes import ExitCode
from loopdetect.cli.lazy import CodedCommand
from loopdetect.cli.options import profile_option
from loopdetect.cli.output import COLOR_CHOICES
from loopdetect.cli.params import DURATION
from loopdetect.cli.policy import make_policy, policy_options
from loopdetect.errors import UsageProblem

FORMATS = ("auto", "text", "jsonl", "table")


class WatchCommand(CodedCommand):
    """Shows the codes that a watch can end with."""

    codes = (
        ExitCode.OK,
        ExitCode.UNABLE,
        ExitCode.BUG,
        ExitCode.INTERRUPTED,
        ExitCode.READER_GONE,
        ExitCode.TERMINATED,
    )


@click.command(cls=WatchCommand)
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option("--once", is_flag=True, help="Print the current state of all and exit.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="auto",
    show_default=True,
    help="text: a line an event; jsonl: the same for programs; table: a live table; auto: the "
    "table on a terminal, else text.",
)
@click.option("-o", "--output", metavar="FILE", default=None, help="Add the lines to FILE.")
@click.option(
    "--color",
    type=click.Choice(COLOR_CHOICES),
    default="auto",
    show_default=True,
    help="Colours; auto also heeds NO_COLOR and TERM=dumb.",
)
@click.option(
    "--on-change",
    metavar="CMD",
    help="Run this shell command when a state changes: the report on its standard input, the facts "
    "in WATCH_STATE, WATCH_SOURCE, WATCH_REASON …",
)
@click.option(
    "--on-change-limit",
    "action_limit",
    type=DURATION,
    default="30s",
    show_default=True,
    help="How long the command may take.",
)
@click.option("--webhook", metavar="URL", help="Post the same as JSON; Slack understands it.")
@click.option(
    "--webhook-secret-env",
    "secret_env",
    metavar="NAME",
    default="WEBHOOK_SECRET",
    show_default=True,
    help="The environment variable with the secret that signs what is posted.",
)
@click.option(
    "--settle",
    type=DURATION,
    default="10s",
    show_default=True,
    help="How long a crash must stand without a restart before somebody is told of it.",
)
@click.option(
    "--remind-after",
    type=DURATION,
    default="1h",
    show_default=True,
    help="Tell again of a crash loop, crash or stall that still stands.",
)
@click.option(
    "--metrics", metavar="[ADDR:]PORT", help="Serve metrics for Prometheus; ADDR is 127.0.0.1."
)
@click.option(
    "--metrics-file", metavar="FILE", help="Write them for node_exporter's textfile collector."
)
@click.option(
    "--state-dir",
    metavar="DIR",
    help="Keep offsets, runs and what was told here, so that a later watch goes on from there.",
)
@click.option(
    "--poll",
    is_flag=True,
    help="Compare the folders every half second instead of listening to file events.",
)
@profile_option
@policy_options
@click.option("-q", "--quiet", is_flag=True, help="Leave out phases and progress.")
def watch(
    logs: tuple[str, ...],
    once: bool,
    form: str,
    output: str | None,
    color: str,
    on_change: str | None,
    action_limit: float,
    webhook: str | None,
    secret_env: str,
    settle: float,
    remind_after: float,
    metrics: str | None,
    metrics_file: str | None,
    state_dir: str | None,
    poll: bool,
    profiles: tuple[str, ...],
    loop_after: int | None,
    stable_after: float | None,
    stall_after: float | None,
    quiet: bool,
) -> int:
    """Follow logs as they grow and tell what happens: start, phases, progress, ready, errors,
    crash, restart, crash loop, stall, recovery.

    LOG is a file (it may not exist yet), a folder, a quoted glob, or - for standard input.
    """
    from loopdetect.cli import watch_session
    from loopdetect.follow.happened import Manner

    if form == "table" and output not in (None, "-"):
        raise UsageProblem("--format table is for a terminal", "use --format text with -o")
    request = watch_session.Request(
        logs=logs,
        form=form,
        output=None if output == "-" else output,
        color=color,
        once=once,
        poll=poll,
        profiles=profiles,
        policy=make_policy(loop_after, stable_after, stall_after),
        manner=Manner(settle=settle, remind=remind_after),
        on_change=on_change,
        action_limit=action_limit,
        webhook=webhook,
        secret_env=secret_env,
        metrics=metrics,
        metrics_file=metrics_file,
        state_dir=state_dir,
        quiet=quiet,
    )
    return watch_session.once(request) if once else watch_session.follow(request)
