"""The history of an agent's work ranks as the definition says, whatever closes and is opened again."""

from statistics import median

from hypothesis import given
from hypothesis import strategies as st

from evaluators.formulas.work import LEAST_HISTORY, MOST_HISTORY, WorkHistory, ranked_inputs
from evaluators.uses import Work

works = st.builds(Work, *[st.integers(0, 5)] * 6)
closings = st.lists(st.tuples(st.integers(0, 30), works), max_size=80)


@given(closings, st.integers(0, 30), works)
def test_ranks_are_the_definition_s(
    closed: list[tuple[int, Work]], session: int, work: Work
) -> None:
    history = WorkHistory()
    newest: dict[int, Work] = {}
    for each, its in closed:
        history.put(each, its)
        newest.pop(each, None)
        newest[each] = its

    ranked = history.rank(session, work)

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
    for n in range(MOST_HISTORY + 2):
        history.put(n, Work(n))

    assert len(history) == MOST_HISTORY
    assert next(iter(history)) == 2


@given(closings, st.integers(0, 30), works)
def test_a_history_is_the_same_after_it_was_stored(
    closed: list[tuple[int, Work]], session: int, work: Work
) -> None:
    history = WorkHistory()
    for each, its in closed:
        history.put(each, its)

    again = WorkHistory(history.pack())

    assert again.pack() == history.pack()
    assert again.rank(session, work) == history.rank(session, work)
    assert again.digest(session) == history.digest(session)


@given(closings, st.integers(0, 30))
def test_the_digest_is_of_the_other_sessions_in_any_order(
    closed: list[tuple[int, Work]], session: int
) -> None:
    history, others = WorkHistory(), WorkHistory()
    for each, its in closed:
        history.put(each, its)
    for each, its in reversed(dict(closed).items()):
        if each != session:
            others.put(each, its)

    assert history.digest(session) == others.digest(session)


def test_work_beyond_the_greatest_number_counts_as_that() -> None:
    history = WorkHistory()
    for n in range(LEAST_HISTORY):
        history.put(n, Work(1 << 40, questions=1))

    ranked = history.rank(99, Work(1 << 50, questions=1))

    assert ranked is not None
    assert ranked.ranks["transcript"] == 0.5


def test_without_any_text_calls_are_counted() -> None:
    history = WorkHistory()
    for n in range(LEAST_HISTORY):
        history.put(n, Work(tool_calls=1, model_calls=1))
    work = Work(tool_calls=3, model_calls=2)

    ranked = history.rank(99, work)

    assert ranked is not None
    assert [*ranked.ranks] == ["model_calls", "tool_calls"]
    assert "the spans carry no text" in ranked.explanation(work)


@given(works, works, works)
def test_more_work_never_ranks_better(one: Work, more: Work, other: Work) -> None:
    history = WorkHistory()
    for n in range(LEAST_HISTORY):
        history.put(n, other.plus(Work(n, n, n, n, n, 1)))

    before, after = history.rank(99, one), history.rank(99, one.plus(more))

    assert before is not None
    assert after is not None
    if ranked_inputs(one) == ranked_inputs(one.plus(more)):
        assert after.score <= before.score


def test_the_explanation_says_how_many_times_the_usual() -> None:
    history = WorkHistory()
    for n in range(LEAST_HISTORY):
        history.put(n, Work(100, 50, 10, 2, 3, 1))
    work = Work(310, 100, 20, 4, 3, 1)

    ranked = history.rank(99, work)

    assert ranked is not None
    assert ranked.explanation(work) == (
        "3.1x the usual transcript, 2.0x the usual answers, 2.0x the usual questions,"
        " 2.0x the usual tool calls"
    )
