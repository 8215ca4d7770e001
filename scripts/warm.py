"""Import what the service and its judge import: their bytecode is then written, and that of nothing else.

    python -m scripts.warm

`make install` runs it: with the bytecode of every file of every library, an installation is a quarter larger.
"""

import importlib
import sys

MODULES = (
    "collector.commands.start",
    "collector.commands.cli",
    "collector.service.app",
    "collector.judging.child",
)


def main() -> None:
    """The commands, the service with its embedder, and the judge."""
    sys.dont_write_bytecode = False  # whatever PYTHONDONTWRITEBYTECODE says: it is what this is for
    for module in MODULES:
        importlib.import_module(module)
    # Both of these libraries are imported at their first use.
    importlib.import_module("evaluators.providers.wordllama").WordLlamaEmbedder().embed(["a"])
    importlib.import_module("evaluators.providers.litellm").LiteLlmJudge(
        timeout=1.0, temperature=0.0
    ).load()


if __name__ == "__main__":
    main()
