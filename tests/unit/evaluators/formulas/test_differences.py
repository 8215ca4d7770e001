"""What differs is listed with both shares; what chance explains is not, and words never fill the list."""

import random
from collections.abc import Collection

from evaluators.formulas.differences import LEAST, Difference, Fact, differences, facts
from tests.support.table import for_each


def of(user: str = "acme", question: str = "where is my order", **changed: str) -> frozenset[Fact]:
    return facts(
        versions=[changed.get("version", "1.4.2")],
        models=[changed.get("model", "small")],
        users=[user],
        attributes=[{"plan": changed.get("plan", "free")}],
        tools=[changed.get("tool", "find_order")],
        questions=[question],
    )


@for_each(
    "usual,risen,difference",
    [
        (of("globex"), of("acme"), Difference("user", "acme", 0.2, 0.75)),
        (of(), of(plan="pro"), Difference("attribute", "plan=pro", 0.2, 0.75)),
    ],
)
def test_what_many_more_sessions_have_is_listed_with_both_shares(
    usual: frozenset[Fact], risen: frozenset[Fact], difference: Difference
) -> None:
    before, since = [risen] * 20 + [usual] * 80, [risen] * 30 + [usual] * 10

    assert differences(before, since) == [difference]


def test_what_fewer_have_is_listed_where_nothing_stands_in_its_place() -> None:
    without = facts(versions=[], models=[], users=[], attributes=[], tools=[], questions=[])
    tool: Fact = ("tool", "find_order")

    found = differences([{*without, tool}] * 50, [{*without, tool}] * 5 + [without] * 45)

    assert found == [Difference("tool", "find_order", 1.0, 0.1)]


def test_releases_models_and_tools_come_with_all_sessions_or_none() -> None:
    before, since = [of()] * 100, [of(version="2", model="large", tool="look_up")] * 30

    assert sorted(differences(before, since)) == [
        Difference("model", "large", 0.0, 1.0),
        Difference("tool", "look_up", 0.0, 1.0),
        Difference("version", "2", 0.0, 1.0),
    ]


def test_words_are_two_at_most() -> None:
    since = [of(question="please refund the broken kettle today")] * 40

    found = differences([of()] * 100, [*since, *[of("globex")] * 10])

    assert [each.kind for each in found].count("word") == 2


def test_few_sessions_are_no_difference() -> None:
    one_in_five = [of("globex"), *[of()] * 4]

    assert differences([of()] * 200, one_in_five) == []
    assert differences([of()] * 200, [of("globex")] * (LEAST - 1)) == []
    assert differences([], [of("globex")] * 50) == []
    assert differences([of()] * 50, []) == []


def test_what_chance_does_is_hardly_ever_listed() -> None:
    draw = random.Random(7)
    words = [f"w{chr(97 + a)}{chr(97 + b)}" for a in range(26) for b in range(26)]

    def side(count: int) -> list[Collection[Fact]]:
        return [
            of(
                user=f"u{draw.randrange(20)}",
                model=draw.choice(["small", "large"]),
                question=" ".join(draw.sample(words, 12)),
            )
            for _ in range(count)
        ]

    false = sum(bool(differences(side(200), side(draw.choice([10, 40, 200])))) for _ in range(100))

    assert false <= 3


def test_long_texts_and_names_are_cut() -> None:
    found = facts(
        versions=[None],
        models=["m" * 500],
        users=[None, ""],
        attributes=[{}, {"key": "v" * 500}],
        tools=[],
        questions=["word " * 1000 + "late", None],
    )

    assert found == {("model", "m" * 64), ("attribute", "key=" + "v" * 60), ("word", "word")}
