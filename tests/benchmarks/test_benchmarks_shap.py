"""The script behind the times of docs/explanations.md: a tiny run, its lines and table."""

import json

import pytest

from benchmarks import record

pytestmark = pytest.mark.deep


def test_a_whole_run(tmp_path, monkeypatch, capsys):
    pytest.importorskip("shap", reason="the package shap is not installed")
    from benchmarks import shap

    monkeypatch.setattr(record, "RESULTS", tmp_path)
    sizes = {"trees": 2, "train-rows": 400, "rows": 8, "shap-rows": 2, "background": 5}
    options = [f"--{name}={n}" for name, n in (sizes | {"threads": 1, "runs": 2}).items()]
    monkeypatch.setattr("sys.argv", ["shap", *options])
    shap.main()
    lines = [json.loads(line) for line in (tmp_path / "shap.jsonl").read_text().splitlines()]
    assert [line["depth"] for line in lines] == [16, None]
    for line in lines:
        assert line["sum_error"] < 1e-12
        assert line["difference"] < 1e-9
        assert line["background_rows"] == 5
        for kind in shap.KINDS:
            assert len(line[kind]) == (
                0 if (line["depth"], kind) == (None, "shap_background") else 2
            )
            assert all(ms >= 0 for run in line[kind] for ms in run)
    assert lines[0]["difference_background"] < 1e-6  # shap's weights have 32 bits
    assert lines[1]["difference_background"] is None
    out = capsys.readouterr().out
    assert [f"| {depth}, {clock} |" in out for depth in (16, "unlimited")
            for clock in ("clock", "processors")] == [True] * 4  # fmt: skip
