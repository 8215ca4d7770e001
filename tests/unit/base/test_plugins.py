"""When an evaluator of a third party is switched off, and when it is tried again."""

from collector.base.plugins import SHORTER, STRIKES, WINDOW, PluginSwitch

NAME = "mine/broken"


def test_the_third_strike_in_ten_minutes_switches_it_off_for_ten_minutes() -> None:
    switch = PluginSwitch()

    struck = [switch.strike(NAME, now) for now in (0.0, 10.0, 20.0)]

    assert struck == [False, False, True]
    assert switch.is_off(NAME, 20.0 + WINDOW - 1)
    assert switch.off(20.0) == {NAME}
    assert not switch.is_off(NAME, 20.0 + WINDOW)
    assert not switch.off(20.0 + WINDOW)
    assert not switch.is_off("mine/other", 20.0)


def test_strikes_further_apart_do_not_add_up() -> None:
    switch = PluginSwitch()

    struck = [switch.strike(NAME, at * WINDOW) for at in range(2 * STRIKES)]

    assert not any(struck)


def test_it_begins_anew_once_it_is_on_again() -> None:
    switch = PluginSwitch()
    for now in (0.0, 0.0, 0.0):
        switch.strike(NAME, now)

    assert not switch.strike(NAME, WINDOW)
    assert not switch.is_off(NAME, WINDOW)


def test_after_a_strike_it_has_less_time_for_a_while() -> None:
    switch = PluginSwitch()
    assert switch.limit(NAME, 10.0, 0.0) == 10.0
    switch.strike(NAME, 0.0)
    assert switch.limit(NAME, 10.0, 1.0) == 10.0 / SHORTER
    assert switch.limit(NAME, 10.0, WINDOW + 1) == 10.0
