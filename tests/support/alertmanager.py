"""A real Alertmanager, of the Debian package `prometheus-alertmanager`, whose receiver is a webhook of the test."""

import json
import shutil
import subprocess
import urllib.request
from pathlib import Path
from typing import Any, Self

from tests.support.eventually import wait_until
from tests.support.ports import free_ports
from tests.support.required import missing

PROGRAM = "prometheus-alertmanager"


class AlertmanagerServer:
    """Tells `receiver` at once; a resolved alert too."""

    def __init__(self, folder: Path, receiver: str) -> None:
        self._folder = folder
        self._receiver = receiver
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def __enter__(self) -> Self:
        """Started and ready."""
        if shutil.which(PROGRAM) is None:
            missing("ALERTMANAGER", f"NO ALERTMANAGER, NOT TESTED: install Debian's `{PROGRAM}`")
        self._folder.mkdir(parents=True, exist_ok=True)
        hook = {"url": self._receiver, "send_resolved": True}
        configuration = {
            "route": {
                "receiver": "test",
                "group_by": ["..."],
                "group_wait": "10ms",
                "group_interval": "1s",
            },
            "receivers": [{"name": "test", "webhook_configs": [hook]}],
        }
        (self._folder / "alertmanager.yml").write_text(json.dumps(configuration))
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    PROGRAM,
                    f"--config.file={self._folder / 'alertmanager.yml'}",
                    f"--storage.path={self._folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{port}",
                    "--cluster.listen-address=",
                ],
                stdout=log,
                stderr=log,
            )
        wait_until(self._is_ready, timeout=60)
        return self

    def __exit__(self, *_: object) -> None:
        """Ended."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def alerts(self) -> list[dict[str, Any]]:
        """What fires there."""
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts", timeout=10) as answer:
            return json.load(answer)

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=1):
                return True
        except OSError:
            return False
