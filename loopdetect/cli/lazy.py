"""A command group that imports a command only when it is called."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Final, cast

import click

from loopdetect.cli.exit_codes import ExitCode, rows

USUAL: Final = (ExitCode.OK, ExitCode.FINDING, ExitCode.UNABLE, ExitCode.BUG)


class LazyGroup(click.Group):
    """`table` maps a command's name to (module, attribute, one line of help).

    `codes` are the exit codes that help shows, all without any.
    """

    def __init__(
        self,
        *args: Any,
        table: Mapping[str, tuple[str, str, str]],
        codes: tuple[ExitCode, ...] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.table = table
        self.codes = codes

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the table's order."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        entry = self.table.get(cmd_name)
        if entry is None:
            return None
        return cast(click.Command, getattr(importlib.import_module(entry[0]), entry[1]))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that `args` name; raises UsageError with the nearest name."""
        name = args[0]
        if name not in self.table and not name.startswith("-") and not ctx.resilient_parsing:
            import difflib

            near = difflib.get_close_matches(name, self.table, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(self.table)}"
            raise click.UsageError(f"no command {name!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands' help without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry[2]) for name, entry in self.table.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the exit codes below the commands."""
        write_exit_codes(formatter, *self.codes)
        super().format_epilog(ctx, formatter)


class CodedCommand(click.Command):
    """A command whose help ends with the exit codes that it can give."""

    codes: tuple[ExitCode, ...] = USUAL

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the exit codes below the options."""
        write_exit_codes(formatter, *self.codes)
        super().format_epilog(ctx, formatter)


def write_exit_codes(formatter: click.HelpFormatter, *codes: ExitCode) -> None:
    """Write a section with the given exit codes, or with all."""
    with formatter.section("Exit codes"):
        formatter.write_dl(rows(*codes))
