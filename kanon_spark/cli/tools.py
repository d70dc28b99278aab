"""`kanon schema` and `kanon gc`."""

import json

from kanon_spark.cli.guard import guarded
from kanon_spark.cli.options import AsJson, ConfigPath, Overrides, Quiet
from kanon_spark.cli.output import emit, out_console


@guarded
def schema() -> None:
    """Print the JSON Schema of configuration files, for editors."""
    import typer

    from kanon_spark.config.schema import config_schema

    typer.echo(json.dumps(config_schema(), indent=2, ensure_ascii=False))


@guarded
def gc(config: ConfigPath, overrides: Overrides = None, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Remove what dead runs of CONFIG left behind (it holds raw data)."""
    from kanon_spark.config.loader import load_config
    from kanon_spark.engine.session import get_spark
    from kanon_spark.releases.gc import collect_garbage

    removed = collect_garbage(get_spark(), load_config(config, overrides=overrides or (), keys_optional=True))
    if as_json:
        emit({"event": "outcome", "outcome": "done", "exit_code": 0, "removed": removed})
    elif not quiet:
        console = out_console()
        console.print(f"removed {len(removed)} leftover{'s' if len(removed) != 1 else ''}", markup=False)
        for name in removed:
            console.print(f"  {name}", markup=False, soft_wrap=True)
