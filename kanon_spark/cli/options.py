"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

ConfigPath = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="The configuration, a YAML file (see conf/README.md).")
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="a.b=c", help="Change one key; the value is read as YAML. May be given several times."
    ),
]
RecodingPath = Annotated[
    str,
    typer.Argument(
        metavar="RECODING", help="The folder …_recoding in the work directory of a run, or one that was saved."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Events and result as JSON, one object per line.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing unless something is wrong.")]
ShowValues = Annotated[
    bool,
    typer.Option("--show-values", help="Show raw values in the findings. They are personal data: mind who reads on."),
]
