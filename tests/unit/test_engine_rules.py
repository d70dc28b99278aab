"""Rules about the source text that no type checker knows: where the JVM may be touched, and how lineage is broken."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "kanon_spark"
JVM = re.compile(r"sparkContext|\.rdd\b|_jdf\b|_jvm\b|_jsc\b|_jsparkSession|\.checkpoint\(")
MAY_TOUCH_THE_JVM = ("engine/session.py", "engine/hadoop.py", "stitch/")
FILES = sorted(PACKAGE.rglob("*.py"))


def offending(pattern: re.Pattern[str], text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if pattern.search(line)]


def test_the_patterns_find_what_they_look_for() -> None:
    assert offending(JVM, "x = spark.sparkContext.parallelize\ny = df.rdd.map\nz = df.checkpoint()") != []
    assert offending(JVM, "the rdd of old\n") == []
    assert len(FILES) > 50


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_connect_clean(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if not str(path.relative_to(PACKAGE)).startswith(MAY_TOUCH_THE_JVM):
        assert offending(JVM, text) == []
    # It does not survive a lost executor: lineage is broken by writing parquet and reading it back.
    assert "localCheckpoint" not in text
    assert "cache()" not in text
    assert not re.search(r"^\s*print\(", text, re.MULTILINE)
