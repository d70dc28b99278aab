"""The crontab and its script, run as cron runs them: by sh, with next to no environment."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "conf" / "schedulers"
NIGHTLY = str(FOLDER / "kanon_nightly")


def crontab() -> tuple[dict[str, str], str, str]:
    """The variables, the times and the command of the crontab."""
    variables, entries = {}, []
    for line in (FOLDER / "crontab").read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"(\w+)=(.*)", line):
            variables[match.group(1)] = match.group(2)
        elif line and not line.startswith("#"):
            entries.append(line)
    assert len(entries) == 1
    *times, command = entries[0].split(maxsplit=5)
    return variables, " ".join(times), command


def fake_kanon(folder: Path, *codes: int) -> Path:
    """A command that ends with one code after the other, and counts its calls."""
    script = folder / "kanon"
    script.write_text(
        f'#!/bin/sh\necho "{{\\"day\\": \\"$DAY\\"}}"\necho trouble >&2\necho x >>{folder}/calls\n'
        f"set -- {' '.join(map(str, codes))}\nshift $(($(wc -l <{folder}/calls) - 1))\nexit $1\n",
        encoding="utf-8",
    )
    script.chmod(0o755)
    return script


@pytest.mark.parametrize(
    ("codes", "ends", "calls", "says"),
    [
        ([0], 0, 1, ""),
        ([5, 5, 0], 0, 3, ""),
        ([5, 5, 5, 5], 5, 4, "in 4 tries"),
        ([3], 3, 1, "the data does not fit"),
        ([4], 4, 1, "the previous release stays"),
        ([2], 2, 1, "the request"),
        ([5, 4], 4, 2, "the previous release stays"),
        ([1], 1, 1, "unexpected"),
    ],
)
def test_only_5_is_tried_again(tmp_path: Path, codes: list[int], ends: int, calls: int, says: str) -> None:
    environment = {
        "PATH": "/usr/bin:/bin",
        "KANON": str(fake_kanon(tmp_path, *codes)),
        "KANON_PAUSE": "0",
        "DAY": "2026-01-31",
    }
    command = [NIGHTLY, "job.yaml", str(tmp_path / "logs")]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == ends
    assert len((tmp_path / "calls").read_text().splitlines()) == calls
    assert (says in ran.stdout) if says else (ran.stdout == ""), "cron mails whatever is printed"
    log = tmp_path / "logs" / "job_2026-01-31.jsonl"
    assert log.read_text(encoding="utf-8").count('{"day": "2026-01-31"}') == calls
    assert log.stat().st_mode & 0o077 == 0, "logs are internal"


def test_the_line_of_the_crontab_publishes_a_night_once(repo: Path, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from kanon_spark.demo.table import make_admissions

    variables, times, command = crontab()
    assert re.fullmatch(r"\d+ \d+ \* \* \*", times)
    assert "%" not in command, "cron reads it as a line break"
    night = make_admissions(400)
    for day in ("2026-01-30", "2026-01-31"):
        folder = tmp_path / "admissions" / f"day={day}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table(night), folder / "part.parquet")
    kanon = tmp_path / "venv" / "bin" / "kanon"
    kanon.parent.mkdir(parents=True)
    start = "from kanon_spark.cli.main import main; main()"
    kanon.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{start}' \"$@\"\n", encoding="utf-8")
    kanon.chmod(0o755)
    environment = {
        **{name: value.replace("/opt/kanon/venv", str(tmp_path / "venv")) for name, value in variables.items()},
        "HOME": os.environ["HOME"],
        "KANON_DATA": str(tmp_path),
        "PYTHONPATH": str(repo),
        "DAY": "2026-01-31",
        **({"JAVA_HOME": os.environ["JAVA_HOME"]} if "JAVA_HOME" in os.environ else {}),
    }
    line = command.replace("/opt/kanon/conf", str(repo / "conf"))
    for _ in range(2):
        ran = subprocess.run(["/bin/sh", "-c", line], env=environment, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout) == (0, ""), ran.stdout
    log = (tmp_path / "internal" / "logs" / "nightly_2026-01-31.jsonl").read_text(encoding="utf-8")
    assert re.findall(r'"event": "outcome", "outcome": "(\w+)"', log) == ["published", "repeated"]
    assert [path.name for path in (tmp_path / "public").iterdir()] == ["day=2026-01-31"]
