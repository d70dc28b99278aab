"""Progress of a run: one living line in a terminal, plain lines elsewhere, JSON events where asked for."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from kanon_spark.cli.output import emit, error_console
from kanon_spark.engine.stages import STAGES, Listener, StageEvent


def json_listener(event: StageEvent) -> None:
    """Each event as a line of JSON."""
    emit(
        {
            "event": "stage",
            "stage": event.stage,
            "state": event.state,
            "text": event.text,
            "seconds": round(event.seconds, 3),
        }
    )


@contextmanager
def progress(*, as_json: bool = False, quiet: bool = False) -> Iterator[list[Listener]]:
    """The listeners for a run, alive as long as the body runs."""
    console = error_console()
    if as_json:
        yield [json_listener]
    elif quiet:
        yield []
    elif console.is_terminal:
        with _living_line() as listener:
            yield [listener]
    else:
        yield [_plain_lines()]


def _plain_lines() -> Listener:
    console, begin = error_console(), time.perf_counter()

    def listen(event: StageEvent) -> None:
        if event.state != "end":
            text = event.text if event.state == "start" else f"  {event.text}"
            console.print(f"{time.perf_counter() - begin:7.1f} s  {text}", markup=False, soft_wrap=True)

    return listen


@contextmanager
def _living_line() -> Iterator[Listener]:
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    names = list(STAGES)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=error_console(), transient=True) as bar:
        task = bar.add_task("start Spark", total=None)

        def listen(event: StageEvent) -> None:
            number = f"{names.index(event.stage) + 1}/{len(names)} " if event.stage in STAGES else ""
            if event.state == "start":
                bar.update(task, description=f"{number}{event.text}")
            elif event.state == "note":
                bar.update(task, description=f"{number}{STAGES.get(event.stage, event.stage)}: {event.text}")
            else:
                bar.console.print(f"  {event.seconds:6.1f} s  {event.text}", markup=False, style="dim")

        yield listen
