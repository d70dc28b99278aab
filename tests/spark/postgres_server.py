"""A PostgreSQL server of the tests' own: Debian's, on a free loopback port, in a folder that goes with it."""

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Server:
    """Where it is reached."""

    port: int
    password: str
    user: str = "kanon_test"

    @property
    def url(self) -> str:
        """The JDBC URL."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"

    @property
    def conninfo(self) -> str:
        """The same for psycopg."""
        return f"host=127.0.0.1 port={self.port} dbname=postgres user={self.user} password={self.password}"


@contextmanager
def running_server() -> Iterator[Server]:
    """Start a server for the body; the test is skipped where there is none and none can be installed."""
    programs = _programs()
    # Not under pytest's folder, into which no other user may look.
    folder = Path(tempfile.mkdtemp(prefix="kanon_postgres_"))
    data = folder / "data"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    server = Server(port, f"canary_{secrets.token_hex(8)}")
    secret = folder / "password"
    secret.write_text(server.password, encoding="utf-8")
    as_user = _as_postgres(folder)
    made = [programs / "initdb", "-D", data, "-A", "scram-sha-256", "-U", server.user, "--pwfile", secret, "-N"]
    _run(*as_user, *made)
    options = f"-c listen_addresses=127.0.0.1 -c port={port} -c fsync=off -c unix_socket_directories={folder}"
    _run(*as_user, programs / "pg_ctl", "-D", data, "-l", folder / "log", "-o", options, "-w", "start")
    try:
        yield server
    finally:
        _run(*as_user, programs / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(folder)


def _programs() -> Path:
    found = _installed()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        install = ["apt-get", "install", "-y", "--no-install-recommends", "postgresql"]
        for command in (install, ["apt-get", "update"], install):
            subprocess.run(command, env=env, capture_output=True, check=False, timeout=300)
            found = _installed()
            if found is not None:
                break
    if found is None:
        pytest.skip("no PostgreSQL server here, and none can be installed (root and apt-get)")
    return found


def _installed() -> Path | None:
    places = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    on_path = shutil.which("initdb")
    places += [Path(on_path).resolve().parent] if on_path else []
    return next((place for place in places if (place / "initdb").exists()), None)


def _as_postgres(folder: Path) -> list[str]:
    """The server refuses to run as root: Debian's package has made a user for it."""
    if os.geteuid() != 0:
        return []
    shutil.chown(folder, "postgres")
    for each in folder.iterdir():
        shutil.chown(each, "postgres")
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]


def _run(*command: object) -> None:
    # The server inherits what it is started with: a pipe would stay open for as long as it runs.
    ended = subprocess.run(
        list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=120, cwd="/"
    )
    assert ended.returncode == 0, f"{command[-1]} failed"
