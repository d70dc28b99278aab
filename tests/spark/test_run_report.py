"""The report of a run: what it shows, what its external edition must not, and how a browser takes it."""

import copy
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from run_world import WITH_REPORT, World

from kanon_spark.report.html import render_html

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

K = 5
HOSTILE = ["<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "\u202eright to left", "émoji 🚑"]
RARE, SUPPRESSED, IDENTIFIER = "Canary rare", "Canary suppressed", "Canary name"
CANARY_COST = 98_765.5  # the largest of all
TITLES = [
    "Rows before and after",
    "Where detail was lost",
    "The quasi-identifiers, before and after",
    "How large the classes are",
    "The sensitive columns over the classes",
    "How easily someone is found",
    "How the method got there",
    "What was verified on the written table",
    "All numbers, and how they are worked out",
    "What this does not promise",
    "The configuration",
    "The run",
]


def people(size: int = 300) -> pd.DataFrame:
    """Rows of which a few carry what nobody outside may read."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "who": [f"p{i // 2}" for i in range(size)],
            "name": [f"{IDENTIFIER} {i}" for i in range(size)],
            "age": rng.integers(20, 70, size),
            "town": rng.choice(HOSTILE, size),
            "ill": rng.choice(["flu", "cough", HOSTILE[0]], size),
            "cost": rng.integers(100, 9_000, size).astype(float),
        }
    )
    table.loc[:11, "ill"] = RARE  # twelve rows, but of fewer than k persons
    table.loc[:11, "who"] = [f"p{i // 3}" for i in range(12)]
    table.loc[20:21, ["age", "town", "ill"]] = [600, SUPPRESSED, SUPPRESSED]
    table.loc[30, ["town", "cost"]] = [RARE, CANARY_COST]  # one person's: published in a set, and as it is
    return table


@pytest.fixture(scope="module")
def world(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> World:
    made = World(spark, tmp_path_factory.mktemp("report"))
    made.save(spark.createDataFrame(people()))
    job = made.job(
        {"age": {"hierarchy": {"interval": {"widths": [5, 10, 40]}}, "max_level": 2}, "town": {}},
        k=K,
        name="<b>report<b>",
        columns={"identifiers": ["name"], "sensitive": ["ill", "cost"], "other": "drop"},
        privacy={"unit": "who", "max_suppression": 0.02},
        report=WITH_REPORT,
        source={"path": "data/table", "options": {"mergeSchema": "false"}},
    )
    made.run(job)
    return made


@pytest.fixture(scope="module")
def manifest(world: World) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(world.manifest.read_text(encoding="utf-8"))
    return found


def test_the_internal_edition_shows_everything(world: World, manifest: dict[str, Any]) -> None:
    page = (world.manifest.parent / "report.html").read_text(encoding="utf-8")
    titles = re.findall(r"<h2 id=[^>]*>(.*?)</h2>", page)
    assert titles == TITLES
    assert len(page.encode()) < 3_000_000
    assert "<script" not in page and "<img" not in page
    assert RARE in page
    assert "mergeSchema: (not shown)" in page
    details = manifest["details"]
    age, town = details["quasi_identifiers"]["columns"]
    for column in (age, town):
        assert sum(column["before"]) == pytest.approx(1.0)
        assert sum(column["after"]) == pytest.approx(1.0)
    source = people()
    shares = source["town"].value_counts(normalize=True)
    assert dict(zip(town["bars"], town["before"], strict=True)) == pytest.approx(shares.to_dict())
    assert SUPPRESSED not in {each["label"] for each in town["published"]}


def test_sensitive_values_are_counted_over_the_classes(world: World, manifest: dict[str, Any]) -> None:
    ill, cost = manifest["details"]["sensitive"]["columns"]
    kept = world.spark.read.parquet(str(world.sink)).toPandas()
    counts = kept["ill"].value_counts()
    assert {value["label"]: value["rows"] for value in ill["values"]} == counts.to_dict()
    shares = kept.groupby(["age", "town"])["ill"].apply(lambda part: (part == "flu").mean()).to_numpy()
    flu = next(value for value in ill["values"] if value["label"] == "flu")
    for name, quantile in (("least", 0.0), ("low", 0.1), ("median", 0.5), ("high", 0.9), ("most", 1.0)):
        assert flu[name] == pytest.approx(np.quantile(shares, quantile)), name
    rare = next(value for value in ill["values"] if value["label"] == RARE)
    assert (rare["rows"], rare["persons"]) == (12, 4)
    labels = [value["label"] for value in cost["values"]]
    assert all("…" in label or "below" in label or "and more" in label for label in labels)
    assert sum(value["rows"] for value in cost["values"]) == len(kept)


def test_no_canary_stands_in_the_external_edition(world: World, manifest: dict[str, Any]) -> None:
    page = render_html(manifest, edition="external")
    assert "Canary" not in page and "98765" not in page.replace(",", "")
    assert str(world.folder) not in page
    assert (manifest["rows"]["suppressed"], manifest["persons_suppressed"]) == (2, 1)
    assert f"&lt;{K}" in page and "Out of" not in page
    assert "Canary" in render_html(manifest)
    # By rows too: without a unit ranges of numbers have rows enough, and are shown.
    by_rows = copy.deepcopy(manifest)
    for column in by_rows["details"]["sensitive"]["columns"]:
        for value in column["values"]:
            del value["persons"]
    page = render_html(by_rows, edition="external")
    assert "and more" in page and "98765" not in page.replace(",", "") and "Canary suppressed" not in page


def test_the_report_can_be_asked_for_later(world: World, spark: "SparkSession") -> None:
    job = world.job({"age": {}}, k=K, columns={"sensitive": ["ill"], "other": "drop"}, sink=None, report=None)
    release = world.run(job, spark.createDataFrame(people()))
    assert release.manifest["details"] is None
    inside = release.report(world.folder / "later.html").read_text(encoding="utf-8")
    outside = release.report(world.folder / "outside.html", edition="external").read_text(encoding="utf-8")
    assert "The sensitive columns over the classes" in inside
    assert "External edition" in outside


def chromium() -> str:
    """The browser; Debian's package is installed where that can be done."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        for command in (["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", "chromium"]):
            subprocess.run(command, capture_output=True, timeout=600, check=False)
        found = shutil.which("chromium")
    if found is None:
        pytest.skip("no Chromium here, and it cannot be installed: that takes root and Debian's packages")
    return found


def browse(page: Path, tmp_path: Path, *, width: int) -> tuple[str, str, set[str]]:
    """Open a page: what the browser logged, the page as it then stands, and the addresses that the page asked for."""
    net, shot = tmp_path / "net.json", tmp_path / "shot.png"
    command = [chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},900"]
    shown = [*command, f"--log-net-log={net}", f"--screenshot={shot}", page.as_uri()]
    done = subprocess.run(shown, capture_output=True, text=True, timeout=180)
    assert shot.stat().st_size > 1_000, done.stderr
    dumped = subprocess.run([*command, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=180)
    # A browser has business of its own in the network; a page's requests name the page as their initiator.
    asked = {
        params["url"]
        for event in json.loads(net.read_text(encoding="utf-8"))["events"]
        if isinstance(params := event.get("params"), dict)
        and str(params.get("url", "")).startswith(("http:", "https:", "ws:", "wss:", "ftp:"))
        and str(params.get("initiator", "not an origin")) != "not an origin"
    }
    return done.stderr, dumped.stdout, asked


@pytest.mark.parametrize("width", [1200, 390], ids=["desktop", "phone"])
def test_a_browser_shows_it_without_a_complaint(world: World, tmp_path: Path, width: int) -> None:
    """No message on the console, no request, all sections there, and nothing that could run."""
    logged, page, asked = browse(world.manifest.parent / "report.html", tmp_path, width=width)
    assert "CONSOLE" not in logged
    assert asked == set()
    assert all(title in page for title in TITLES)
    assert "<script" not in page and "onerror=alert" not in re.sub(r"&[a-z]+;[^<]*", "", page)


def test_a_browser_would_have_been_caught(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text('<img src="http://127.0.0.1:9/x.png"><script>console.log("hello")</script>', encoding="utf-8")
    logged, _, asked = browse(page, tmp_path, width=400)
    assert "CONSOLE" in logged
    assert asked == {"http://127.0.0.1:9/x.png"}
