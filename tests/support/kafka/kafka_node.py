"""One real Apache Kafka broker (KRaft: broker and controller in one process) on loopback, for tests.

Needs Java 17, and Maven the first time. The broker ends with the thread that started it.
"""

from __future__ import annotations

import base64
import contextlib
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.processes import free_ports

POM = Path(__file__).with_name("pom.xml")
ARCHIVE = "kafka.jsa"

# A test broker lives for seconds: start-up time matters, peak speed does not.
JVM = (
    "-Xms64m",
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Xshare:auto",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
)
SETTINGS = Path(__file__).with_name("server.properties").read_text()


class KafkaNodeError(RuntimeError):
    """The broker could not be fetched, formatted or started; the message ends with its last lines."""


def fetch(libs: Path) -> None:
    """Copy the jars into `libs` unless they are there, and make the class archive that halves the start."""
    if not any(libs.glob("kafka_2.13-*.jar")):
        libs.mkdir(parents=True, exist_ok=True)
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={libs.resolve()}"]
        _checked(["mvn", "-B", "-q", "-f", str(POM), *goal], "fetching the jars")
    if not (libs / ARCHIVE).exists():
        with KafkaNode(libs, jvm=(f"-XX:ArchiveClassesAtExit={libs / ARCHIVE}",)):
            pass


class KafkaNode:
    """A broker over a data folder of its own. Port and data survive `kill` and `start`."""

    def __init__(
        self,
        libs: Path,
        data: Path | None = None,
        *,
        jvm: tuple[str, ...] = (),
        users: Mapping[str, str] | None = None,
        keystore: Path | None = None,
    ) -> None:
        """Run the jars in `libs`; without `data` the folder is a temporary one.

        With `users` (name: password) and `keystore` (PEM: key, then certificate) it listens with SASL over TLS, too.
        """
        self._libs = libs.resolve()
        self._is_temporary = data is None
        self._data = data or Path(tempfile.mkdtemp(prefix="spanwise-kafka-"))
        self._jvm = jvm
        self._process: subprocess.Popen[bytes] | None = None
        self._port, self._controller, self._secure_port = free_ports(3)
        self._users = users
        self._keystore = keystore

    @property
    def bootstrap(self) -> str:
        """What clients connect to."""
        return f"127.0.0.1:{self._port}"

    @property
    def secure(self) -> str:
        """Where SASL over TLS is spoken."""
        return f"127.0.0.1:{self._secure_port}"

    def __enter__(self) -> KafkaNode:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, timeout: float = 120.0) -> KafkaNode:
        """Format a new data folder; start; return when the broker serves metadata."""
        properties = self._data / "server.properties"
        if not properties.exists():
            self._format(properties)
        with (self._data / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*_guard(), *self._java("kafka.Kafka"), str(properties)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + timeout
        while live_brokers(self._port) < 1:
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise KafkaNodeError(f"the broker did not become ready:\n{self._tail()}")
            time.sleep(0.05)
        return self

    def stop(self, timeout: float = 20.0) -> None:
        """SIGTERM, then SIGKILL; a temporary data folder goes."""
        if self._is_running():
            self.resume()  # a paused process does not see SIGTERM
            self._signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                assert self._process is not None
                self._process.wait(timeout)
            self.kill()
        if self._is_temporary:
            shutil.rmtree(self._data, ignore_errors=True)

    def kill(self) -> None:
        """SIGKILL: what a crash does."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def pause(self, timeout: float = 20.0) -> None:
        """SIGSTOP: connections stay, nothing answers. Returns when every thread has stopped, which takes its time."""
        self._signal(signal.SIGSTOP)
        deadline = time.monotonic() + timeout
        while self._is_running() and not self._is_stopped():
            if time.monotonic() > deadline:
                raise KafkaNodeError("the broker does not stop")
            time.sleep(0.01)

    def resume(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    def _secured(self, users: Mapping[str, str], broker: str) -> dict[str, str]:
        known = " ".join(f'user_{name}="{password}"' for name, password in users.items())
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        return {
            "listeners": f"{broker},SASL_SSL://{self.secure},CONTROLLER://127.0.0.1:{self._controller}",
            "advertised.listeners": f"{broker},SASL_SSL://{self.secure}",
            "listener.security.protocol.map": (
                "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL"
            ),
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": f"{module} required {known};",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._keystore),
            # Whatever has no rule is open to all, so that a test names only what it closes.
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "allow.everyone.if.no.acl.found": "true",
        }

    def _is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _is_stopped(self) -> bool:
        assert self._process is not None
        threads = Path(f"/proc/{self._process.pid}/task").glob("*/stat")
        # The state follows the command, which stands in parentheses and may hold any character.
        return all(each.read_text().rpartition(")")[2].split()[0] == "T" for each in threads)

    def _signal(self, number: int) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def _tail(self) -> str:
        lines = (self._data / "broker.log").read_text(errors="replace").splitlines()
        return "\n".join(lines[-30:])

    def _java(self, main: str) -> Iterator[str]:
        # Sorted, not `libs/*`: the archive is used only with the class path that it was made with.
        jars = sorted(str(jar) for jar in self._libs.glob("*.jar"))
        if not jars:
            raise KafkaNodeError(f"no jars in {self._libs}")
        yield from ("java", *JVM, "-Xlog:cds=off", "-Xlog:cds+dynamic=off")
        archive = self._libs / ARCHIVE
        if archive.exists() and not self._jvm:
            yield f"-XX:SharedArchiveFile={archive}"
        if main == "kafka.Kafka":
            yield from self._jvm
        yield from ("-cp", ":".join(jars), main)

    def _format(self, properties: Path) -> None:
        self._data.mkdir(parents=True, exist_ok=True)
        broker = f"PLAINTEXT://{self.bootstrap}"
        settings = {
            "log.dirs": str(self._data / "log"),
            "listeners": f"{broker},CONTROLLER://127.0.0.1:{self._controller}",
            "advertised.listeners": broker,
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller}",
        }
        if self._users is not None:
            settings |= self._secured(self._users, broker)
        own = "".join(f"{key}={value}\n" for key, value in settings.items())
        properties.write_text(SETTINGS + own)
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # With `=`: an id may begin with `-` and would be read as an option, once in 64 times.
        tool = self._java("kafka.tools.StorageTool")
        _checked(
            [*tool, "format", "-c", str(properties), f"--cluster-id={cluster}"],
            "formatting the data folder",
        )


def live_brokers(port: int) -> int:
    """How many brokers a Metadata v1 request lists; 0 while not ready. An open port is not ready yet."""
    request = struct.pack(">hhih", 3, 1, 7, -1) + struct.pack(">i", 0)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as link:
            link.sendall(struct.pack(">i", len(request)) + request)
            answer = link.makefile("rb").read(12)
    except OSError:
        return 0
    return int.from_bytes(answer[8:12], "big") if len(answer) == 12 else 0


def _guard() -> tuple[str, ...]:
    """No orphan broker when the test run is killed."""
    setpriv = shutil.which("setpriv")
    return (setpriv, "--pdeathsig", "KILL") if setpriv else ()


def _checked(command: list[str], what: str) -> None:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise KafkaNodeError(f"{what} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
