"""`kanon report`: a report from a manifest that lies there."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kanon_spark.cli.main import app


@pytest.mark.parametrize("edition", ["internal", "external"])
def test_a_report_is_written_again(manifest: dict[str, Any], tmp_path: Path, edition: str) -> None:
    kept, out = tmp_path / "manifest.json", tmp_path / "new" / "report.html"
    kept.write_text(json.dumps(manifest), encoding="utf-8")
    done = CliRunner().invoke(app, ["report", str(kept), "--out", str(out), "--edition", edition, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["report"] == str(out)
    page = out.read_text(encoding="utf-8")
    assert ("Rows before and after" in page) == (edition == "internal")
    open_to_others = bool(stat.S_IMODE(out.stat().st_mode) & 0o077)
    assert open_to_others == (edition == "external")


def test_what_is_no_manifest_is_refused(tmp_path: Path) -> None:
    missing = CliRunner().invoke(app, ["report", str(tmp_path / "none.json")])
    assert missing.exit_code == 2
    (tmp_path / "other.json").write_text("[]", encoding="utf-8")
    other = CliRunner().invoke(app, ["report", str(tmp_path / "other.json"), "--json"])
    assert other.exit_code == 2
    assert "not a manifest" in other.output
    assert not (tmp_path / "report.html").exists()
