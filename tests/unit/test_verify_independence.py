"""The verifier shares no code with what it verifies: not by its own imports, nor through what it imports."""

import ast
import subprocess
import sys
from pathlib import Path

FORBIDDEN = ("privacy", "recoding", "hierarchy", "methods", "kernels")


def imported(path: Path) -> set[str]:
    """Every module of ours that a file names in an import, at its top or inside a function, for types only or not."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide what is imported"
            found |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] == "kanon_spark"}


def is_forbidden(module: str) -> bool:
    return module.split(".")[1:2] != [] and module.split(".")[1] in FORBIDDEN


def test_no_file_of_the_verifier_names_a_forbidden_room(repo: Path) -> None:
    files = sorted((repo / "kanon_spark" / "verify").glob("*.py"))
    assert len(files) > 5
    wrong = {file.name: sorted(filter(is_forbidden, imported(file))) for file in files}
    assert {name: modules for name, modules in wrong.items() if modules} == {}


def test_loading_the_verifier_loads_no_forbidden_room() -> None:
    program = (
        "import sys, kanon_spark.verify.release, kanon_spark.verify.standalone, kanon_spark.verify.table\n"
        "print([name for name in sys.modules if name.startswith('kanon_spark.') "
        f"and name.split('.')[1] in {FORBIDDEN!r}])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_walk_sees_imports_wherever_they_stand(tmp_path: Path) -> None:
    file = tmp_path / "sample.py"
    file.write_text("def f():\n    from kanon_spark import hierarchy\n    import kanon_spark.kernels.problem\n")
    assert sorted(filter(is_forbidden, imported(file))) == ["kanon_spark.hierarchy", "kanon_spark.kernels.problem"]
