"""The summary at the end of a run."""

import io
from typing import Any

import pytest
from rich.console import Console

from kanon_spark.report.console import clean, render_summary


def rendered(manifest: dict[str, Any], *, width: int = 140, encoding: str = "utf-8", terminal: bool = False) -> str:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    render_summary(manifest, Console(file=stream, width=width, force_terminal=terminal, highlight=False))
    stream.flush()
    return stream.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]


def test_all_that_a_person_wants_to_read_is_there(manifest: dict[str, Any]) -> None:
    text = rendered(manifest)
    wanted = [
        "shared by at least 10 persons",
        "10 was asked for",
        "l-diversity of diagnosis",
        "values of an entropy of at least ln 3",
        "49,990",
        "42,654",
        "10407",
        "104**",
        "18.7%",
        "17.0%",
        "9.93%",
        "dual bound",
        "10 to 19",
        "2,700",
        "/out/release",
        "/out/manifest.json",
        "/out/report.html",
        "20.5 s",
        "Not in the release: name, patient_id",
        "release of other data",
    ]
    assert [piece for piece in wanted if piece not in text] == []


def test_wide_terminals_show_before_and_after_in_one_line(manifest: dict[str, Any]) -> None:
    lines = rendered(manifest).splitlines()
    assert any("10407" in line and "104**" in line for line in lines)


def test_narrow_terminals_show_one_below_the_other_and_nothing_is_lost(manifest: dict[str, Any]) -> None:
    lines = rendered(manifest, width=70).splitlines()
    place = next(i for i, line in enumerate(lines) if "10407" in line)
    assert "104**" not in lines[place]
    assert "104**" in lines[place + 1]
    assert all(len(line) <= 70 for line in lines if "/out/" not in line and "Verified" not in line)


def test_dropped_columns_never_show_their_values(manifest: dict[str, Any]) -> None:
    assert "Emil" not in rendered(manifest)


def test_piped_output_has_no_control_characters(manifest: dict[str, Any]) -> None:
    assert "\x1b" not in rendered(manifest)


def test_values_cannot_steer_the_terminal_or_the_markup(manifest: dict[str, Any]) -> None:
    text = rendered(manifest, terminal=True, width=200)
    assert "\x1b[2J" not in text
    assert "[red]stroke[/red]" in text


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_terminals_without_unicode_get_plain_signs(manifest: dict[str, Any], encoding: str) -> None:
    text = rendered(manifest, encoding=encoding)
    assert "->" in text
    assert "#" in text


def test_loss_bars_are_as_long_as_the_loss(manifest: dict[str, Any]) -> None:
    manifest["metrics"]["per_qi"] = {"all": {"ncp": 1.0}, "none": {"ncp": 0.0}, "half": {"ncp": 0.5}}
    lines = rendered(manifest).splitlines()
    filled = {
        name: next(line for line in lines if line.startswith(name)).count("█") for name in ("all", "none", "half")
    }
    assert filled == {"all": 24, "none": 0, "half": 12}


@pytest.mark.parametrize(
    "manifest_part", [{}, {"metrics": None}, {"samples": {"before": [1]}}, {"rows": 5, "seconds": []}]
)
def test_incomplete_manifests_are_rendered(manifest_part: dict[str, Any]) -> None:
    assert "Nothing was published" in rendered(manifest_part)


def test_clean_shortens_and_replaces() -> None:
    assert clean("a\tb\n") == "a?b?"
    assert clean("abcdef", width=4) == "abc…"
