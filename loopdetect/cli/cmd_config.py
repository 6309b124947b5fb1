"""`loopdetect config`: each setting, its value, and where it comes from."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from loopdetect.cli.lazy import CodedCommand
from loopdetect.cli.options import format_option, output_options
from loopdetect.cli.output import destination, write
from loopdetect.render.escape import json_safe, visible
from loopdetect.render.paint import BOLD, DIM, Paint, painter
from loopdetect.settings import Value, effective


@click.command(cls=CodedCommand)
@format_option("text", "json")
@output_options
@click.pass_context
def config(context: click.Context, form: str, output: str | None, color: str) -> None:
    """Show each setting, its value and where it comes from: the environment, a loopdetect.toml,
    [tool.loopdetect] in a pyproject.toml, or the default. An option outdoes all of them.
    """
    parent = context.parent
    file = parent.params.get("config") if parent else None
    values = effective(os.environ, Path.cwd(), file)
    target = destination(output, color)
    if form == "json":
        write(_json(values), target)
    else:
        write(_text(values, painter(target.color)), target)


def _json(values: list[Value]) -> str:
    rows = [
        {
            "key": item.setting.key,
            "value": item.value,
            "origin": item.origin,
            "variable": item.setting.variable,
            "help": item.setting.help,
        }
        for item in values
    ]
    return json_safe(json.dumps({"settings": rows}, ensure_ascii=False, indent=2)) + "\n"


def _text(values: list[Value], paint: Paint) -> str:
    keys = max(len(item.setting.key) for item in values)
    shown = [_shown(item.value) for item in values]
    room = max(map(len, shown))
    return "".join(
        f"{paint(item.setting.key.ljust(keys), BOLD)}  {value.ljust(room)}  "
        f"{paint(visible(item.origin), DIM)}\n"
        for item, value in zip(values, shown, strict=True)
    )


def _shown(value: object) -> str:
    if value is None or value == []:
        return "-"
    if isinstance(value, list):
        return visible(",".join(map(str, value)))
    return visible(str(value).lower() if isinstance(value, bool) else str(value))
