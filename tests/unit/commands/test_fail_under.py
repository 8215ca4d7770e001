"""`spanwise evaluate --fail-under NAME=VALUE`: the mean of final scores against a limit."""

from pathlib import Path

import pytest

from collector.base.frames import pack_frame
from collector.commands import cli
from tests.support.asking import asked

MEAN = "confidence"
"""Of the two answers below, one certain and one that hedges, it is between the limits tried here."""


@pytest.mark.parametrize(
    ("limit", "code", "said"),
    [
        (f"{MEAN}=0.5", 0, ""),
        (f"{MEAN}=1", 1, f"{MEAN}: mean "),
        ("step_efficiency=0", 1, "step_efficiency: nothing was scored, so it is below 0\n"),
    ],
)
def test_a_mean_below_or_nothing_scored_is_exit_1(
    limit: str, code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = ["Yes, it left on Monday.", "I am not sure. Maybe it left, perhaps not."]
    recording = tmp_path / "a.otlp"
    recording.write_bytes(
        b"".join(
            pack_frame(asked("s", "Has it left?", answer, number=number))
            for number, answer in enumerate(answers)
        )
    )

    ended = cli.main(
        [
            *("evaluate", str(recording), "--set", "embedder.kind=none"),
            *("--evaluators", f"{MEAN},step_efficiency", "--fail-under", limit),
        ]
    )

    assert ended == code
    assert capsys.readouterr().err.startswith(said)
