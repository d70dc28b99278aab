"""A real Spark cluster on this machine: a standalone master and workers, each a process of its own, on loopback.

The pip wheel of pyspark has all it takes; only the `sbin` scripts are missing, so that the classes are started by
`spark-class`. Every worker leads a process group with its executors in it: killing the group is what a machine that
loses its power looks like to the rest of the cluster.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any

REPO = Path(__file__).resolve().parents[2]
_PATIENCE = 60.0  # seconds until a process must have said that it is up
# The profile is for big workers. Ours have one core and a gigabyte, and tables so small that a job per shuffle, as
# adaptive execution needs it, would be more than the work itself.
_SMALL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.executor.cores": "1",
    "spark.executor.memory": "1g",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}


def spark_home() -> Path:
    """The Spark inside the pip wheel."""
    import pyspark

    return Path(pyspark.__file__).parent


@dataclass
class Server:
    """A master or a worker, with its log."""

    process: "subprocess.Popen[bytes]"
    log: Path

    def wait_for(self, pattern: str) -> str:
        """The first group of the first line of the log that matches."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            found = re.search(pattern, self.log.read_text(encoding="utf-8", errors="replace"))
            if found:
                return found.group(1)
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise AssertionError(f"not up: {self.log.read_text(encoding='utf-8', errors='replace')[-2000:]}")

    def kill(self) -> None:
        """End the server at once (kill -9) and everything in its group (a worker's executors)."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@dataclass
class Outcome:
    """What a job said."""

    code: int
    events: list[dict[str, Any]]
    log: str

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest of a job that went well."""
        assert self.code == 0, self.log[-4000:]
        return dict(self.events[-1]["manifest"])


@dataclass
class Cluster:
    """One master and some workers with one core each, alive inside `with`."""

    folder: Path
    workers: int = 2
    servers: list[Server] = field(default_factory=list)
    url: str = ""

    def __enter__(self) -> "Cluster":
        try:
            ui = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
            master = self._start("master", "org.apache.spark.deploy.master.Master", *ui)
            self.url = master.wait_for(r"Starting Spark master at (spark://\S+)")
            started = [self._start_worker(number) for number in range(self.workers)]
            for worker in started:
                worker.wait_for(r"(Successfully registered with master)")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in reversed(self.servers):
            server.kill()

    def worker(self, number: int) -> Server:
        """The worker of this number."""
        return self.servers[1 + number]

    def submit(
        self,
        config: Path,
        *options: str,
        jars: Sequence[Path] = (),
        archive: Path | None = None,
        at: str | None = None,
        after: float = 0.0,
        then: Callable[[], None] | None = None,
    ) -> Outcome:
        """Run `jobs/anonymize.py` by spark-submit, under the profile for standalone clusters.

        Args:
            config: The job.
            options: More options for `anonymize.py`.
            jars: Jars for driver and executors.
            archive: A packed environment for the executors; without one they use the Python of the tests.
            at: The stage in which `then` is called.
            after: Seconds between the beginning of that stage and the call.
            then: What is to happen to the cluster.
        """
        command = [str(spark_home() / "bin" / "spark-submit"), "--master", self.url]
        command += ["--properties-file", str(REPO / "conf" / "spark" / "standalone.conf")]
        command += [word for key, value in _SMALL.items() for word in ("--conf", f"{key}={value}")]
        environment = self._environment()
        if archive is None:
            command += ["--conf", f"spark.executorEnv.PYTHONPATH={REPO}"]
        else:
            command += ["--archives", f"{archive}#environment"]
            environment |= {"PYSPARK_DRIVER_PYTHON": sys.executable, "PYSPARK_PYTHON": "./environment/bin/python"}
        command += ["--conf", f"spark.executorEnv.KANON_CACHE={_kernels()}"]
        command += ["--jars", ",".join(map(str, jars))] if jars else []
        command += [str(REPO / "jobs" / "anonymize.py"), "--config", str(config), "--json", *options]
        log = self.folder / f"driver_{time.monotonic_ns()}.log"
        with log.open("wb") as errors:
            process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
            )
            try:
                assert process.stdout is not None
                events = _follow(process.stdout, at=at, after=after, then=then)
                code = process.wait(timeout=_PATIENCE)
            finally:
                process.kill()
        return Outcome(code, events, log.read_text(encoding="utf-8", errors="replace"))

    def _start_worker(self, number: int) -> Server:
        return self._start(
            f"worker{number}",
            "org.apache.spark.deploy.worker.Worker",
            *("--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0"),
            *("--work-dir", str(self.folder / f"worker{number}"), self.url),
        )

    def _start(self, name: str, kind: str, *arguments: str) -> Server:
        log = self.folder / f"{name}.log"
        command = [str(spark_home() / "bin" / "spark-class"), kind, *arguments]
        with log.open("wb") as out:
            process = subprocess.Popen(
                command,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a group of its own, which can be killed as a whole
            )
        server = Server(process, log)
        self.servers.append(server)
        return server

    def _environment(self) -> dict[str, str]:
        mine = {
            "SPARK_HOME": str(spark_home()),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(REPO),
            # Six small JVMs on few cores: thorough compiling would never earn its time back, nor would parallel GC.
            "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }
        return {**os.environ, **mine}


def _kernels() -> Path:
    """Where the tests keep compiled kernels: compiling them anew would take minutes."""
    from kanon_spark.compiling import cache_folder

    folder = cache_folder()
    assert folder is not None
    return folder.parent


def _follow(
    stream: IO[bytes], *, at: str | None, after: float, then: Callable[[], None] | None
) -> list[dict[str, Any]]:
    """Read events as they come; the deed is done once, when its stage begins."""
    events = []
    for line in stream:
        if not line.startswith(b"{"):
            continue
        event = json.loads(line)
        events.append(event)
        if then is not None and (event.get("stage"), event.get("state")) == (at, "start"):
            time.sleep(after)
            then()
            then = None
    assert then is None, f"the stage {at} was never reached"
    return events
