"""A real Alertmanager, of the Debian package `prometheus-alertmanager`, whose receiver is a webhook of the test."""

import json
import shutil
from pathlib import Path
from typing import Any, Self

from tests.support.processes import free_ports, missing
from tests.support.server_program import ServerProgram, ask

PROGRAM = "prometheus-alertmanager"


class AlertmanagerServer(ServerProgram):
    """Tells `receiver` at once; a resolved alert too."""

    def __init__(self, folder: Path, receiver: str) -> None:
        self._folder = folder
        self._receiver = receiver
        (port,) = free_ports(1)
        super().__init__(f"http://127.0.0.1:{port}", "/-/ready", folder / "log")

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
        return self.begin(
            PROGRAM,
            f"--config.file={self._folder / 'alertmanager.yml'}",
            f"--storage.path={self._folder / 'data'}",
            f"--web.listen-address={self.url.removeprefix('http://')}",
            "--cluster.listen-address=",
        )

    def __exit__(self, *_: object) -> None:
        """Ended."""
        self.stop()

    def alerts(self) -> list[dict[str, Any]]:
        """What fires there."""
        return ask("GET", f"{self.url}/api/v2/alerts")
