"""What was forwarded is known again when it comes back, however late it is read, and is forgotten in time."""

from collector.forward.forwarder import KEPT, Forwarded


def test_what_comes_back_is_known_while_the_log_is_read_late() -> None:
    now = 1000.0
    lately = Forwarded(lambda: now, room=1000)
    for at in range(100):  # an hour's backlog is sent within 100 s, while some of it comes back
        now = 1000.0 + at
        assert not lately.again([at], written=at * 36.0 - 2600)

    assert lately.again([99], written=1099.5) == {0}


def test_after_a_while_the_same_item_is_news() -> None:
    now = 0.0
    lately = Forwarded(lambda: now)
    for minute in range(3):
        now = minute * 2 * KEPT
        assert not lately.again([1], written=now)


def test_what_is_remembered_is_bounded() -> None:
    lately = Forwarded(lambda: 0.0, room=10)

    lately.again(range(1000), 0.0)

    assert lately.again(range(980, 1000), 0.0) == set(range(20))
    assert not lately.again(range(900), 0.0)
