"""Entry point for spark-submit: `spark-submit jobs/anonymize.py --config CONFIG [--set a.b=c]… [--json]`.

It does what `kanon run CONFIG` does, in the session that spark-submit prepared, with the same exit codes.
"""

import argparse
import sys
from pathlib import Path

try:
    import kanon_spark  # noqa: F401 (only asks whether it is installed)
except ImportError:
    # From a checkout that is not installed: the package stands beside this folder.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


def arguments(given: list[str]) -> list[str]:
    """The `kanon` command line for the given options."""
    parser = argparse.ArgumentParser(
        prog="anonymize.py", description="Anonymize, verify and publish what CONFIG asks for."
    )
    parser.add_argument("--config", required=True, metavar="CONFIG", help="the configuration, a YAML file")
    parser.add_argument("--set", action="append", default=[], metavar="a.b=c", help="change one key; may be repeated")
    parser.add_argument("--json", action="store_true", help="events and result as JSON, one object per line")
    parser.add_argument("--quiet", action="store_true", help="say nothing unless something is wrong")
    options = parser.parse_args(given)
    changes = [word for change in options.set for word in ("--set", change)]
    flags = [flag for flag, asked in (("--json", options.json), ("--quiet", options.quiet)) if asked]
    return ["run", *changes, *flags, "--", options.config]


def main() -> int:
    """Run the job and return its exit code."""
    from kanon_spark.cli.main import invoke

    return invoke(arguments(sys.argv[1:]))


if __name__ == "__main__":
    # Some job managers take any SystemExit, even 0, for a failure.
    code = main()
    if code:
        sys.exit(code)
