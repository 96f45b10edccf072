"""Reports of long work: who hears them, what they count, and what is timed or printed."""

import re
from functools import partial

import pytest

from gpuforest.common import progress
from gpuforest.common.progress import also, counting_on, listening, printing, report, stage


def work():
    with stage("bin"):
        report(1, 2)
        report(2, 2)
    with stage("grow"):
        report(3, 4)


ALL = [("bin", 0, 1), ("bin", 1, 2), ("bin", 2, 2), ("grow", 0, 1), ("grow", 3, 4)]


def test_one_more_listener_takes_nothing_from_the_first():
    first, second = [], []
    with listening(lambda *r: first.append(r)):
        with also(lambda *r: second.append(r)):
            work()
        report(5, 6)
    report(9, 9)  # nobody listens any more
    assert second == ALL
    assert first == [*ALL, ("", 5, 6)]


def test_an_interrupt_as_a_stage_begins_ends_it():
    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), also(stop):
        work()
    recorded = []
    with listening(lambda *r: recorded.append(r)):
        report(5, 6)
    assert recorded == [("", 5, 6)]


def test_seconds_add_up_by_stage():
    with listening() as seconds:
        for _ in range(2):
            work()
        with pytest.raises(ZeroDivisionError), stage("fail"):
            raise ZeroDivisionError
    assert list(seconds) == ["bin", "grow", "fail"]
    assert all(s >= 0 for s in seconds.values())


def test_reports_go_on_from_what_is_done():
    with counting_on(10, 30), stage("grow"):
        report(1, 20)  # nobody listens
    recorded = []
    with listening(lambda *r: recorded.append(r)), stage("grow"):
        with counting_on(10, 30):
            report(1, 20)
            report(20, 20)
        report(2, 3)
    assert recorded == [("grow", 0, 1), ("grow", 11, 30), ("grow", 30, 30), ("grow", 2, 3)]


def printed(capsys):
    """The lines that were printed, with S for all seconds."""
    out = capsys.readouterr().out
    assert not re.search("[^ -~\n]", out)  # nothing that steers a terminal
    return re.sub(r"\d+\.\d+ s", "S", out.replace("gpuforest: ", "")).splitlines()


PRINTED = [[], ["bin, S", "grow, S"], ["bin, 2 of 2", "bin, S", "grow, 3 of 4", "grow, S"]]


@pytest.mark.parametrize(("verbose", "lines"), [*enumerate(PRINTED)])
def test_stages_are_printed_once_with_their_seconds(verbose, lines, capsys):
    with printing(verbose):
        work()
    assert printed(capsys) == lines


def test_stages_in_a_stage_are_a_part_of_it(capsys):
    with stage("select"), printing(1):
        with stage("grow"):
            work()
        with pytest.raises(ZeroDivisionError), stage("fail"):
            raise ZeroDivisionError
    assert printed(capsys) == ["grow, S"]


def test_notes_are_printed_once_a_second_and_the_last_one_always(capsys, monkeypatch):
    now, made = [0.0], []
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])

    def note(i):
        made.append(i)
        return f"round {i} of 20"

    with printing(1), stage("grow"):
        for i in range(1, 14):
            now[0] += 0.25
            report(i, 20, partial(note, i))
    lines = [f"round {i} of 20, {5 - i / 4} s left" for i in (4, 8, 12)]
    expected = [*lines, "round 13 of 20", "grow, 3.25 s"]
    assert capsys.readouterr().out.splitlines() == [f"gpuforest: {line}" for line in expected]
    assert made == [4, 8, 12, 13]  # a note may take long


def test_counts_go_on_where_they_are_printed(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    with printing(2), stage("grow"), counting_on(10, 30):
        for i in range(1, 21):
            now[0] += 0.0625
            report(i, 20)
    said = [f"{10 + i} of 30, S left" for i in range(2, 20, 2)]  # after 0.125 s each
    assert printed(capsys) == [f"grow, {text}" for text in [*said, "30 of 30"]] + ["grow, S"]
