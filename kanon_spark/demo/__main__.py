"""`python -m kanon_spark.demo` (scripts/make_data): write the demo's table, at any size."""

import argparse
import sys
from pathlib import Path

from kanon_spark.demo.table import ROWS, SEED, write_admissions


def main(arguments: list[str] | None = None) -> int:
    """Read the options, write the table, say where it is."""
    parser = argparse.ArgumentParser(prog="make_data", description="Write the demo's table of hospital admissions.")
    parser.add_argument("--rows", type=int, default=ROWS, help=f"how many admissions (default {ROWS})")
    parser.add_argument("--seed", type=int, default=SEED, help=f"another seed makes another table (default {SEED})")
    parser.add_argument(
        "--out", type=Path, default=Path("out/demo/admissions.parquet"), help="the parquet file to write"
    )
    options = parser.parse_args(arguments)
    if options.rows < 1:
        parser.error("--rows must be at least 1")
    written = write_admissions(options.out, rows=options.rows, seed=options.seed)
    sys.stdout.write(f"{options.out}: {options.rows} rows, {'written' if written else 'there already'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
