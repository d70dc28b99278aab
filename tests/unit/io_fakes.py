"""What publishing needs of a Spark session when no table is read or written: so the swap is tested without Spark."""

from pathlib import Path
from typing import Any

from kanon_spark.config.loader import LoadedConfig, load_config


class FakeSpark:
    """A local session that knows where files are and nothing else."""

    def __init__(self, master: str = "local[2]") -> None:
        self._master = master
        self.conf = self
        self.catalog = self
        self.sparkContext = self
        self._jsc = self

    def get(self, key: str, default: str = "") -> str:
        return {"spark.master": self._master, "fs.defaultFS": "file:///"}.get(key, default)

    def hadoopConfiguration(self) -> "FakeSpark":
        return self

    def refreshByPath(self, path: str) -> None:
        """Nothing is cached here."""


def job(folder: Path, **more: Any) -> LoadedConfig:
    """A small configuration whose files lie in `folder`."""
    return load_config(
        {
            "source": {"path": str(folder / "people.parquet")},
            "columns": {"quasi_identifiers": ["age"]},
            "sink": {"path": str(folder / "out" / "people")},
            "execution": {"work_dir": str(folder / "work"), "lease": 5},
            **more,
        }
    )


def folder_of(path: str | Path, **files: str) -> Path:
    """A folder with text files in it, as Spark would leave one."""
    folder = Path(path)
    folder.mkdir(parents=True)
    for name, text in {"_SUCCESS": "", **files}.items():
        (folder / name).write_text(text)
    return folder
