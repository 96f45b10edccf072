"""Reports of long work: who hears them, what they count, and what is timed or printed."""

import pytest

from gpuforest.common.progress import also, counting_on, listening, printing, report, stage


def work():
    with stage("bin"):
        report(1, 2)
        report(2, 2)
    with stage("grow"):
        report(3, 4)


ALL = [("bin", 0, 1), ("bin", 1, 2), ("bin", 2, 2), ("grow", 0, 1), ("grow", 3, 4)]


def heard(listen, *arguments):
    recorded = []
    with listen(*arguments, lambda *report: recorded.append(report)):
        work()
    report(9, 9)  # nobody listens any more
    return recorded


def test_a_listener_hears_every_report():
    assert heard(listening) == heard(also) == ALL


def test_one_more_listener_takes_nothing_from_the_first():
    first, second = [], []
    with listening(lambda *r: first.append(r)):
        with also(lambda *r: second.append(r)):
            work()
        report(5, 6)
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


@pytest.mark.parametrize(
    ("verbose", "lines"),
    [
        (0, []),
        (1, ["bin", "grow"]),
        (2, ["bin", "bin, 1 of 2", "bin, 2 of 2", "grow", "grow, 3 of 4"]),
    ],
)
def test_stages_are_printed(verbose, lines, capsys):
    with printing(verbose):
        work()
    assert capsys.readouterr().out.splitlines() == [f"gpuforest: {line}" for line in lines]
