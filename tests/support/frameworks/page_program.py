"""The program of a page of docs/frameworks, whole: what the page says, around one turn of an agent."""

import re
import textwrap
from collections.abc import Mapping
from pathlib import Path

from scripts.frameworks import PORTS, ROOT, TURN

FOLDER = Path(__file__).parent
SESSION = "chat-7"
AS_OPENAI = {
    "langfuse": "langfuse.openai",
    "logfire": "openai",
    "mlflow": "openai",
    "openlit": "openai",
}
"""Pages of instrumentations of OpenAI's SDK, whose agent is that SDK's, and where it imports the client from."""
_BLOCK = re.compile(r"```(python|sh)\n(.*?)```", re.DOTALL)
_SECTION = re.compile(r"^## ([^\n]+)\n\n```python\n(.*?)```", re.DOTALL | re.MULTILINE)
_VARIABLE = re.compile(r"(\w+)=(\S+)")


def agent(name: str) -> str:
    """The lines of the agent, which the page leaves to its reader."""
    client = AS_OPENAI.get(name)
    text = sections(FOLDER / "agents.md")["openai" if client else name]
    return text.replace("from openai import", f"from {client} import") if client else text


def sections(page: Path) -> dict[str, str]:
    """The Python block under each name of a heading."""
    found = _SECTION.findall(page.read_text())
    return {name: code for names, code in found for name in names.split(", ")}


def program(name: str) -> str:
    """Every Python block of the page's first part, in order, with the agent where the page says so, else at the end."""
    code = "\n".join(_blocks(name, "python"))
    turn = agent(name)
    if TURN in code:
        return code.replace(TURN, textwrap.indent(turn, "    ")).replace('"..."', f'"{SESSION}"')
    return f"{code}\n{turn}".replace('"..."', f'"{SESSION}"')


def environment(name: str, ports: Mapping[int, int]) -> dict[str, str]:
    """What the page exports; `ports` are those that the service has in the place of the usual ones."""
    exported = (line for line in "".join(_blocks(name, "sh")).splitlines() if line[:7] == "export ")
    found = {key: value for line in exported for key, value in _VARIABLE.findall(line)}
    for port in PORTS.values():
        usual, ours = f"127.0.0.1:{port}", f"127.0.0.1:{ports[port]}"
        found = {key: value.replace(usual, ours) for key, value in found.items()}
    return found


def _blocks(name: str, language: str) -> list[str]:
    page = (ROOT / "docs" / "frameworks" / f"{name}.md").read_text("utf-8")
    connect = page.partition("## What one sees")[0]
    return [code for kind, code in _BLOCK.findall(connect) if kind == language]
