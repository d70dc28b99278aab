"""`kanon check`: what would go wrong, found before the work starts."""

from typing import TYPE_CHECKING

import typer

from kanon_spark.cli.guard import guarded
from kanon_spark.cli.options import AsJson, ConfigPath, Overrides, Quiet, ShowValues
from kanon_spark.cli.output import emit, out_console

if TYPE_CHECKING:
    from kanon_spark.config.preflight import Finding


@guarded
def check(
    config: ConfigPath,
    overrides: Overrides = None,
    show_values: ShowValues = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Check CONFIG against the real table, without anonymizing anything."""
    from kanon_spark.config.checking import check_job, exit_code_of
    from kanon_spark.config.loader import load_config

    findings = check_job(load_config(config, overrides=overrides or ()), show_values=show_values)
    code = exit_code_of(findings)
    if as_json:
        for finding in findings:
            emit({"event": "finding", **_as_dict(finding)})
        emit({"event": "outcome", "outcome": "failed" if code else "passed", "exit_code": code})
    elif not quiet or code:
        _show(findings, origin=str(config))
    raise typer.Exit(code)


def _as_dict(finding: "Finding") -> dict[str, str]:
    return {"level": finding.level, "path": finding.path, "message": finding.message, "fix": finding.fix}


def _show(findings: "list[Finding]", *, origin: str) -> None:
    from rich.text import Text

    console = out_console()
    counts = {level: sum(finding.level == level for finding in findings) for level in ("error", "warning")}
    if not findings:
        console.print(f"{origin}: all is well", style="green", markup=False, soft_wrap=True)
        return
    told = ", ".join(f"{count} {level}{'s' if count > 1 else ''}" for level, count in counts.items() if count)
    console.print(f"{origin}: {told}", style="bold", markup=False, soft_wrap=True)
    last = None
    # Errors first; within a level, findings of one path stay together.
    for finding in sorted(findings, key=lambda item: (item.level != "error", item.path)):
        if finding.path != last:
            console.print(Text(f"  {finding.path}"), soft_wrap=True)
        last = finding.path
        mark = Text("    error    ", style="red") if finding.level == "error" else Text("    warning  ", style="yellow")
        console.print(mark.append(finding.message, style="default"), soft_wrap=True)
        if finding.fix:
            console.print(Text(f"             fix: {finding.fix}", style="dim"), soft_wrap=True)
