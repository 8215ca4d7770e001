import pytest

from collector.api.page.views import standing


@pytest.mark.parametrize(
    ("value", "success", "colour"),
    [
        (0.0, True, "fair"),  # the same answer twice is not a loop yet
        (0.8, True, "good"),
        (0.9, False, "poor"),
        (0.1, None, "unknown"),  # work_baseline neither passes nor fails
    ],
)
def test_the_colour_of_an_outcome_is_whether_it_passed(
    value: float, success: bool | None, colour: str
) -> None:
    assert standing(value, success) == colour
