"""Which spans of a trace somebody stopped: those that say so, and errors without a type around or within them."""

from collections.abc import Set as AbstractSet

from evaluators.dialects.content.endings import CODES, is_cancelled, raised, timed_out
from evaluators.dialects.content.facts import Facts
from evaluators.dialects.joining.tree import WORK, Tree


def mark_cancelled(tree: Tree, names: AbstractSet[str]) -> None:
    """Set `is_cancelled`; `names` are those of all attributes of the trace.

    What a time-out or a deadline around it stopped has failed.

    Many libraries write an error without its type where a run is stopped. Such a one is the stop's, where nothing began
    after it: an earlier one is a failure of its own.
    """
    states = not CODES.isdisjoint(names)
    may_be = tree.order if states else [f for f in tree.order if f.span.events]
    stopped = [f for f in may_be if is_cancelled(f.span) and not _timed_out(tree, f)]
    if not stopped:
        return
    begun = _last_begun(tree)
    for facts in stopped:
        facts.is_cancelled = True
        if facts.span.end_time_unix_nano >= begun:
            for around in tree.ancestors(facts):
                if around.span.status != "error" or not _is_untold(around):
                    break
                around.is_cancelled = True
    for facts in tree.order:
        span = facts.span
        if span.status == "error" and span.end_time_unix_nano >= begun and _is_untold(facts):
            facts.is_cancelled = any(each.is_cancelled for each in tree.ancestors(facts))


def ends_cancelled(tree: Tree) -> bool:
    cancelled = [f.span.end_time_unix_nano for f in tree.order if f.is_cancelled]
    return bool(cancelled) and max(cancelled) >= _last_begun(tree)


def _timed_out(tree: Tree, facts: Facts) -> bool:
    return any(timed_out(each.span) for each in tree.ancestors(facts))


def _is_untold(facts: Facts) -> bool:
    return not (facts.is_cancelled or raised(facts.span))


def _last_begun(tree: Tree) -> int:
    return max((f.span.start_time_unix_nano for f in tree.order if f.kind in WORK), default=0)
