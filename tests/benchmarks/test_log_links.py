"""The script behind the limit of log links of docs/boosting.md: a tiny run, its lines and table."""

import json

import pytest

pytest.importorskip("lightgbm", reason="no LightGBM here")

from benchmarks import log_links, record

pytestmark = pytest.mark.deep


def test_a_whole_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    arguments = ["--rows", "200", "--rates", "0.1", "--ratios", "1", "--seeds", "1"]
    monkeypatch.setattr("sys.argv", ["log_links", *arguments])
    log_links.main()
    text = (tmp_path / "log_links.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["loss"] for line in lines] == ["gamma", "poisson", "tiny rates"]
    assert all(0 < line[library] < 3 for line in lines for library in log_links.LIBRARIES)
    assert "| gamma | 0.1 | 1 |" in capsys.readouterr().out
