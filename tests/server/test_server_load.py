"""Many clients at once, a third of which hang up: every answer is right, and nothing is left behind."""

from __future__ import annotations

import random
import sys

import httpx
import pytest
import serve
import serve_load
from serving import until

N = 8
PROMPTS = [serve.texts()[number] for number in (0, 1, 2)]  # the second takes several chunks


@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of a process from /proc")
def test_a_load() -> None:
    rng = random.Random(1)
    requests = serve_load.plan_requests(200, clients=8, prompts=len(PROMPTS), cut=0.33, rng=rng)
    with serve.served("--sessions", "2") as (url, pid):
        alone = [serve_load.measure_baseline(url, prompt, N) for prompt in PROMPTS]
        serve_load.run_requests(serve_load.Load(url, pid, PROMPTS, alone, N), requests[:120])
        report = serve_load.run_requests(serve_load.Load(url, pid, PROMPTS, alone, N), requests[120:])
        until(lambda: "ds4py_running 0.0" in httpx.get(url + "/metrics").text)
        assert "ds4py_queue_length 0.0" in httpx.get(url + "/metrics").text
        again = [serve_load.measure_baseline(url, prompt, N).text for prompt in PROMPTS]
    assert report.failed == [] and report.wrong == 0
    assert report.finished + report.cut == 80 and report.cut > 15
    assert again == [each.text for each in alone]
    assert report.memory_growth < 20 << 20  # a session that is lost takes as much
    assert report.p95_first_token < 60


def test_a_plan_is_for_all_clients() -> None:
    requests = serve_load.plan_requests(40, clients=8, prompts=3, cut=0.5, rng=random.Random(2))
    assert {each.client for each in requests} == set(range(8)) and {each.prompt for each in requests} == {0, 1, 2}
    assert 5 < sum(each.cut is not None for each in requests) < 35
