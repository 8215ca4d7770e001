"""`python -m collector.commands.healthcheck`: ask the service of the same container whether it lives, for an engine.

Exit code 0 if `/healthz` answers 200, else 1 with one line on stderr. The address comes from SPANWISE_ADMIN__HOST and
SPANWISE_ADMIN__PORT, as the image sets them; a port that only a configuration file names is not seen.
"""

import http.client
import os
import sys
from collections.abc import Mapping

HOST, PORT = "127.0.0.1", 4390  # where the admin port is by default
WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - they are read, nothing binds to them
TIMEOUT = 4.0
"""Seconds; an engine's own limit is longer."""


def address(environment: Mapping[str, str]) -> tuple[str, int]:
    """Where the admin port answers from within the container; loopback where it listens on every address.

    Raises:
        ValueError: the port is not a number.
    """
    host = environment.get("SPANWISE_ADMIN__HOST") or HOST
    return WILDCARDS.get(host, host), int(environment.get("SPANWISE_ADMIN__PORT") or PORT)


def complaint(environment: Mapping[str, str]) -> str | None:
    """What is wrong, in one line; None: it lives."""
    try:
        connection = http.client.HTTPConnection(*address(environment), timeout=TIMEOUT)
        try:
            connection.request("GET", "/healthz")
            status = connection.getresponse().status
        finally:
            connection.close()
    except (OSError, ValueError, http.client.HTTPException) as error:
        return f"no answer: {error}"
    return None if status == http.client.OK else f"/healthz answers {status}"


def main() -> int:
    said = complaint(os.environ)
    if said is not None:
        sys.stderr.write(f"spanwise: {said}\n")
    return int(said is not None)


if __name__ == "__main__":
    sys.exit(main())
