"""The documents hold what they promise: blocks load, commands exist, links lead somewhere."""

import os
import re
from pathlib import Path

import pytest
import yaml

from kanon_spark.config.loader import load_config

DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "tests/README.md",
    "hierarchies/demo/README.md",
    "jobs/README.md",
    "conf/databricks/README.md",
    "conf/schedulers/README.md",
]


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def commands(repo: Path) -> list[list[str]]:
    lines = [
        line.split("#")[0].split()
        for document in DOCUMENTS
        for block in blocks((repo / document).read_text(), "sh")
        for line in block.splitlines()
    ]
    return [line for line in lines if line]


def test_yaml_blocks_are_valid_configurations(repo: Path) -> None:
    found = blocks((repo / "README.md").read_text(), "yaml")
    assert found
    for block in found:
        config = load_config(yaml.safe_load(block)).config
        assert config.privacy.k == 10
        assert config.privacy.unit in config.columns.identifiers


def test_scripts_exist_and_can_be_run(repo: Path) -> None:
    scripts = {line[0] for line in commands(repo) if line[0].startswith("./")}
    assert {"./scripts/demo", "./scripts/test", "./scripts/setup", "./.ci/run"} <= scripts
    for script in scripts:
        assert os.access(repo / script, os.X_OK), script


def test_kanon_commands_and_their_options_exist(repo: Path) -> None:
    from typer.main import get_command

    from kanon_spark.cli.main import app

    known = get_command(app).commands  # type: ignore[attr-defined]
    used = [line[1:] for line in commands(repo) if line[0] == "kanon"]
    assert {line[0] for line in used} >= {"run", "check", "verify"}
    for name, *rest in used:
        options = {option for parameter in known[name].params for option in parameter.opts}
        assert {word for word in rest if word.startswith("--")} <= options, name


def test_every_command_that_the_changelog_names_exists(repo: Path) -> None:
    from typer.main import get_command

    from kanon_spark.cli.main import app

    line = next(line for line in (repo / "CHANGELOG.md").read_text().splitlines() if "`kanon run`" in line)
    named = set(re.findall(r"`(?:kanon )?(\w+)`", line.split(";")[0]))
    assert named == set(get_command(app).commands)  # type: ignore[attr-defined]


def test_files_named_in_commands_exist(repo: Path) -> None:
    words = {word for line in commands(repo) for word in line if word.endswith((".yaml", ".py"))}
    assert words
    assert [word for word in words if not (repo / word).is_file()] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(repo: Path, document: str) -> None:
    path = repo / document
    targets = [target for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()) if "://" not in target]
    assert [target for target in targets if not (path.parent / target).exists()] == []


def test_exit_codes_of_the_readme_are_those_of_the_errors(repo: Path) -> None:
    from kanon_spark import errors

    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.KanonError)]
    rows = re.findall(r"^\| (\d) \|", (repo / "README.md").read_text(), flags=re.MULTILINE)
    assert {int(row) for row in rows} == {0, *(kind.exit_code for kind in kinds)}
