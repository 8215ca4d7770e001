"""What judging one outcome took."""

import msgspec


class JudgeUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The judge calls behind one outcome, and their cost."""

    model: str
    calls: int
    """Calls that this outcome rests on, those shared with others included."""
    input_tokens: int
    """This outcome's share, like `output_tokens` and `cost_usd`: sums over outcomes are what was paid."""
    output_tokens: int
    cost_usd: float | None
    """None: the price is not known."""
    cached: bool
    """Every one of those calls was answered from a cache."""
    again: float | None = None
    """The score of a second answer to the same question, where the judge was asked twice and gave one."""
