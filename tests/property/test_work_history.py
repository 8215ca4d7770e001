"""The history of an agent's work ranks as the definition says, whatever closes and is opened again."""

from __future__ import annotations

from statistics import median

from hypothesis import given
from hypothesis import strategies as st

from evaluators.formulas.work import LEAST_HISTORY, MOST_HISTORY, Work, WorkHistory

works = st.builds(Work, *[st.integers(0, 5)] * 5)
closings = st.lists(st.tuples(st.integers(0, 30), works), max_size=80)


@given(closings, st.integers(0, 30), works)
def test_ranks_are_the_definition_s(
    closed: list[tuple[int, Work]], session: int, work: Work
) -> None:
    history = WorkHistory()
    newest: dict[int, Work] = {}
    for each, its in closed:
        history.put(str(each), its)
        newest.pop(each, None)
        newest[each] = its

    ranked = history.rank(str(session), work)

    others = [its for each, its in newest.items() if each != session]
    if len(others) < LEAST_HISTORY:
        assert ranked is None
        return
    assert ranked is not None
    assert ranked.earlier == len(others)
    for name, rank in ranked.ranks.items():
        values, value = [getattr(each, name) for each in others], getattr(work, name)
        less, same = sum(v < value for v in values), sum(v == value for v in values)
        assert rank == (less + 0.5 * same + 0.5) / (len(others) + 1)
        assert ranked.medians[name] == median(values)
    assert ranked.score == round(1 - sum(ranked.ranks.values()) / len(ranked.ranks), 4)


def test_the_newest_are_remembered() -> None:
    history = WorkHistory()
    forgotten = [history.put(str(n), Work(n)) for n in range(MOST_HISTORY + 2)]

    assert [each for each in forgotten if each] == ["0", "1"]
    assert len(history) == MOST_HISTORY


def test_without_any_text_calls_are_counted() -> None:
    assert Work(tool_calls=3, model_calls=2).ranked == ("model_calls", "tool_calls")
    assert "transcript" in Work(transcript=5, questions=5).ranked


@given(works, works, works)
def test_more_work_never_ranks_better(one: Work, more: Work, other: Work) -> None:
    history = WorkHistory()
    for n in range(LEAST_HISTORY):
        history.put(str(n), other.plus(Work(n, n, n, n, n)))

    before, after = history.rank("x", one), history.rank("x", one.plus(more))

    assert before is not None
    assert after is not None
    if one.ranked == one.plus(more).ranked:
        assert after.score <= before.score


def test_the_explanation_says_how_many_times_the_usual() -> None:
    history = WorkHistory()
    for n in range(LEAST_HISTORY):
        history.put(str(n), Work(100, 50, 10, 2, 3))
    work = Work(310, 100, 20, 4, 3)

    ranked = history.rank("x", work)

    assert ranked is not None
    assert ranked.explanation(work) == (
        "3.1x the usual transcript, 2.0x the usual answers, 2.0x the usual questions,"
        " 2.0x the usual tool calls"
    )
