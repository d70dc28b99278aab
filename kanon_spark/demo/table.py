"""The demo's table: admissions to an invented hospital, skewed and correlated as real ones are, the same every time.

Everything is drawn from one seeded stream of uniform numbers by inverse distribution functions, so that the rows do
not depend on how a library version happens to sample. The way of a patient:

1. home: cities weigh 1/rank, and so do the zip codes inside a city; sex; age at the first admission.
2. occupation: by age first (child, pupil, student, retired), then by the share of women in each trade; or unknown.
3. visits: the old come back more often; a patient keeps id, name, sex, zip and occupation, and grows older.
4. diagnosis: by age and sex, often the same at the next visit; the cost follows diagnosis and age.
"""

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kanon_spark.demo import words

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 50_000
SEED = 20_240_101
_FIRST_DAY, _DAYS = np.datetime64("2023-01-01"), 731  # two years
_FORM = "1"  # raised when the table made from the same rows and seed changes

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Ages at the first admission: the share of patients below each age.
_AGE_STEPS = np.array([0, 1, 15, 30, 45, 60, 75, 90, 101], dtype=np.float64)
_AGE_SHARES = np.array([0.0, 0.05, 0.12, 0.26, 0.43, 0.63, 0.86, 0.99, 1.0])
_BANDS = np.array([15, 40, 65])  # the age bands of `Diagnosis.by_age`


def make_admissions(rows: int = ROWS, *, seed: int = SEED) -> "pa.Table":
    """The table as pyarrow makes it: the same rows for the same arguments, ordered by date and patient.

    >>> table = make_admissions(1000)
    >>> table.num_rows, table.column_names[:4]
    (1000, ['patient_id', 'name', 'age', 'sex'])
    """
    if rows < 1:
        raise ValueError("a table needs at least one row")
    rng = np.random.default_rng(seed)
    zips, zip_weights = _zip_codes()

    # One draw per possible patient; how many are needed shows once their visits are known.
    zip_code = _draw(rng.random(rows), zip_weights)
    female = (rng.random(rows) < 0.53).astype(np.int64)
    days_old = (np.interp(rng.random(rows), _AGE_SHARES, _AGE_STEPS) * 365.25).astype(np.int64)
    occupation = _occupations(rng, days_old // 365, female)
    first_day = _season(rng.random(rows))
    first_name = _draw(rng.random(rows), _name_weights(len(words.FIRST_NAMES["female"])))
    last_name = _draw(rng.random(rows), _name_weights(len(words.LAST_NAMES)))
    number = np.argsort(np.argsort(rng.random(rows)))  # ids say nothing about when a patient first came

    # Rows: each patient's visits, cut where the table is full.
    chance_to_return = 0.06 + 0.16 * np.clip(days_old / 365.25 / 90, 0, 1)
    visits = 1 + np.minimum(np.floor(np.log(1 - rng.random(rows)) / np.log(chance_to_return)), 7).astype(np.int64)
    patient = np.repeat(np.arange(rows), visits)[:rows]
    again = np.concatenate([[False], patient[1:] == patient[:-1]])
    since = np.where(again, rng.random(rows) ** 2 * (_DAYS - 1 - first_day[patient]), 0).astype(np.int64)
    day = first_day[patient] + since
    age = (days_old[patient] + since) * 4 // 1461
    diagnosis = _diagnoses(rng, age, female[patient], again)
    cost = _costs(rng, age, diagnosis)

    order = np.lexsort((number[patient], day))
    who = patient[order]
    return _arrow(
        {
            "patient_id": number[who],
            "name": (female[who], first_name[who], last_name[who]),
            "age": age[order].astype(np.int32),
            "sex": female[who],
            "zip": (zips, zip_code[who]),
            "occupation": occupation[who],
            "admission_date": _FIRST_DAY + day[order],
            "diagnosis": diagnosis[order],
            "cost": cost[order],
        }
    )


def write_admissions(path: Path, *, rows: int = ROWS, seed: int = SEED) -> bool:
    """Write the table as one parquet file, unless that very table is there already. Returns whether it was written.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "admissions.parquet"
    >>> write_admissions(target, rows=100), write_admissions(target, rows=100)
    (True, False)
    """
    import pyarrow.parquet as pq

    mark = {b"kanon_demo": f"form {_FORM}, {rows} rows, seed {seed}".encode()}
    if path.is_file() and _mark_of(path) == mark[b"kanon_demo"]:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    table = make_admissions(rows, seed=seed)
    beside = path.with_name(f".{path.name}.new")
    pq.write_table(table.replace_schema_metadata(mark), beside)
    beside.replace(path)
    return True


def _mark_of(path: Path) -> bytes | None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata: dict[bytes, bytes] | None = pq.read_schema(path).metadata
    except (pa.ArrowInvalid, OSError):
        return None  # not a parquet file, or half of one: it is made anew
    return (metadata or {}).get(b"kanon_demo")


def _falling(size: int) -> Floats:
    """Weights 1/rank."""
    return 1.0 / np.arange(1, size + 1)


def _name_weights(size: int) -> Floats:
    """Some names are much more frequent than others, and not the alphabetically first."""
    return _falling(size)[(np.arange(size) * 37) % size] ** 0.6


def _draw(uniform: Floats, weights: Floats) -> Ints:
    """An index for each uniform number, index i as often as `weights[i]` says."""
    cumulative = np.cumsum(weights)
    index: Ints = np.searchsorted(cumulative, uniform * cumulative[-1], side="right").astype(np.int64)
    return index


def _zip_codes() -> tuple[list[str], Floats]:
    codes: list[str] = []
    weights: list[Floats] = []
    for rank, prefix in enumerate(words.CITY_PREFIXES, start=1):
        size = max(3, 40 // rank)
        codes += [f"{prefix}{(7 * i) % 100:02d}" for i in range(size)]
        inside = _falling(size) ** 0.8
        weights.append(inside / inside.sum() / rank)
    return codes, np.concatenate(weights)


def _season(uniform: Floats) -> Ints:
    """A day of the two years: more admissions in winter, fewer at weekends."""
    days = np.arange(_DAYS)
    weekend = (days + 6) % 7 >= 5  # the first day is a Sunday
    return _draw(uniform, (1 + 0.25 * np.cos(2 * np.pi * days / 365.25)) * np.where(weekend, 0.55, 1.0))


def _occupations(rng: np.random.Generator, age: Ints, female: Ints) -> Ints:
    """Positions in `occupation_names()`; -1 where unknown."""
    trades = len(words.OCCUPATIONS)
    uniform, luck, unknown = rng.random(len(age)), rng.random(len(age)), rng.random(len(age))
    chosen = np.empty(len(age), dtype=np.int64)
    for sex in (0, 1):
        share = np.array([job.weight * (job.women if sex else 1 - job.women) for job in words.OCCUPATIONS])
        here = female == sex
        chosen[here] = _draw(uniform[here], share)
    preschool, pupil, student, retired, jobless = range(trades, trades + 5)
    chosen = np.where(luck < 0.06, jobless, chosen)
    chosen = np.where((age < 27) & (luck < 0.55), student, chosen)
    chosen = np.where((age >= 62) & (luck < np.interp(age, [62, 67], [0.3, 0.96])), retired, chosen)
    chosen = np.where(age < 19, pupil, chosen)
    chosen = np.where(age < 6, preschool, chosen)
    return np.where(unknown < 0.035, -1, chosen)


def occupation_names() -> list[str]:
    """Every occupation the table can hold (some rows have none)."""
    by_age = [words.PRESCHOOL, words.PUPIL, words.STUDENT, words.RETIRED, words.JOBLESS]
    return [job.name for job in words.OCCUPATIONS] + by_age


def _diagnoses(rng: np.random.Generator, age: Ints, female: Ints, again: NDArray[np.bool_]) -> Ints:
    uniform, stays = rng.random(len(age)), rng.random(len(age)) < 0.55
    chosen = np.empty(len(age), dtype=np.int64)
    band = np.searchsorted(_BANDS, age, side="right")
    for sex in (0, 1):
        for b in range(len(_BANDS) + 1):
            share = np.array([d.by_age[b] * (d.women if sex else 1 - d.women) for d in words.DIAGNOSES])
            here = (female == sex) & (band == b)
            chosen[here] = _draw(uniform[here], share)
    newborn = next(i for i, d in enumerate(words.DIAGNOSES) if d.name == "newborn care")
    pneumonia = next(i for i, d in enumerate(words.DIAGNOSES) if d.name == "pneumonia")
    chosen = np.where((chosen == newborn) & (age >= 1), pneumonia, chosen)
    # At later visits often the diagnosis of the first: rows of a patient stand together here.
    begin = np.maximum.accumulate(np.where(again, 0, np.arange(len(age))))
    return np.where(again & stays & (chosen[begin] != newborn), chosen[begin], chosen)


def _costs(rng: np.random.Generator, age: Ints, diagnosis: Ints) -> Ints:
    """Cents: around the diagnosis's cost, dearer with age, with a long right tail (Box-Muller gives the normal)."""
    radius, angle = np.sqrt(-2 * np.log(1 - rng.random(len(age)))), 2 * np.pi * rng.random(len(age))
    middle = np.array([d.cost for d in words.DIAGNOSES])[diagnosis]
    amount = middle * (0.7 + 0.6 * age / 100) * np.exp(0.4 * radius * np.cos(angle))
    cents: Ints = np.rint(amount * 100).astype(np.int64)
    return cents


def _arrow(columns: dict[str, Any]) -> "pa.Table":
    """Codes to words, column by column, in Arrow: no Python object per row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    female, first, last = columns["name"]
    firsts = words.FIRST_NAMES["male"] + words.FIRST_NAMES["female"]
    first = first + female * len(words.FIRST_NAMES["male"])
    zips, zip_code = columns["zip"]
    occupation = columns["occupation"]
    number = pc.utf8_lpad(pa.array(columns["patient_id"]).cast(pa.string()), 7, "0")
    cents = pa.array(columns["cost"]).cast(pa.decimal128(19, 0))
    cost = pc.multiply(cents, pa.scalar(Decimal("0.01"))).cast(pa.decimal128(10, 2))
    return pa.table(
        {
            "patient_id": pc.binary_join_element_wise("P", number, ""),
            "name": pc.binary_join_element_wise(_words(firsts, first), _words(words.LAST_NAMES, last), " "),
            "age": columns["age"],
            "sex": _words(["male", "female"], columns["sex"]),
            "zip": _words(zips, zip_code),
            "occupation": pc.take(pa.array(occupation_names()), pa.array(occupation, mask=occupation < 0)),
            "admission_date": pa.array(columns["admission_date"].astype("datetime64[D]")),
            "diagnosis": _words([d.name for d in words.DIAGNOSES], columns["diagnosis"]),
            "cost": cost,
        }
    )


def _words(vocabulary: list[str], codes: Ints) -> "pa.Array":
    import pyarrow as pa

    return pa.array(vocabulary).take(pa.array(codes))
