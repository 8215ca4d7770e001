"""A model on loopback that answers coding agents from a script: one file per language it speaks is beside this one.

It asks for one command whenever a person has spoken last, and says ANSWER to all else.
"""

from itertools import count

from tests.support.loopback import LoopbackServer

ANSWER = "The release is 4.2."
INPUT_TOKENS, OUTPUT_TOKENS = 100, 20
"""What each call is said to have taken."""


class ScriptedModel(LoopbackServer):
    def __init__(self, command: str) -> None:
        """`command` is what it asks for."""
        super().__init__()
        self.command = command
        self.calls = count(1)
