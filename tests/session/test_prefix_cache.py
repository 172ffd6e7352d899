"""What conversations share is evaluated once: in live sessions, by copies of them, and from disk after a restart."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ds4py
from ds4py import Engine, Sampling, Session
from ds4py.generation.cancelling import Cancel
from ds4py.prefix_cache import SessionPool

GREEDY = Sampling(temperature=0, logit_bias={1: -np.inf})  # never the end of text
RNG = np.random.default_rng(5)
SYSTEM: list[int] = RNG.integers(20, 2000, 200).tolist()


def words(count: int) -> list[int]:
    return [int(token) for token in RNG.integers(20, 2000, count)]


def answer(engine: Engine, ids: list[int], count: int = 8) -> tuple[list[int], int]:
    """What follows in the engine's pool, and how many tokens of the prompt were there."""
    stream = engine.complete(ids, max_tokens=count, sampling=GREEDY, draft="dspark", draft_length=3)
    got = [token for piece in stream for token in piece.tokens]
    return got, stream.usage.cached_tokens


def alone(engine: Engine, ids: list[int], count: int = 8) -> list[int]:
    with engine.session() as session:
        pieces = session.generate(ids, max_tokens=count, sampling=GREEDY, draft="off")
        return [token for piece in pieces for token in piece.tokens]


def pool(engine: Engine, sessions: int = 2, cache_dir: Path | None = None, **options: int) -> SessionPool:
    engine.pool = SessionPool(engine, sessions=sessions, cache_dir=cache_dir, **options)
    return engine.pool


# Sessions


@pytest.mark.parametrize("position", [0, 5, 100, 128, 300, 511, 640, 699, 700])
def test_a_copy_is_what_the_other_was(pair: Engine, position: int) -> None:
    """From the live rings, from checkpoints, and with evaluation between; drafts too, and the other stays."""
    ids = (np.arange(720) * 37 % 500 + 3).astype(np.int32)
    with pair.session(context=1024) as source, pair.session(context=800) as copy, pair.session() as wanted:
        source.prefill(ids[:700], checkpoints=[128, 300])
        copy.prefill(ids[50:90])
        copy.copy_from(source, position)
        assert copy.tokens == ids[:position].tolist()
        assert source.tokens == ids[:700].tolist()
        for session in (copy, wanted):
            session.prefill(ids[session.position : position + 17])
            session.anchor = 9
        np.testing.assert_allclose(copy.verify([1, 2, 3]), wanted.verify([1, 2, 3]), atol=2e-5)
        np.testing.assert_array_equal(copy.draft().tokens, wanted.draft().tokens)


def test_what_cannot_be_copied(pair: Engine, tiny: Engine) -> None:
    with pair.session(context=64) as source, tiny.session() as other, pair.session(context=8) as small:
        source.prefill([5] * 20)
        with pytest.raises(ds4py.RequestError, match="another model, drafter or KV type"):
            other.copy_from(source, 5)
        with pytest.raises(ds4py.RequestError, match=r"cannot copy 9 positions: .* context here is 8"):
            small.copy_from(source, 9)
        with pytest.raises(ds4py.RequestError, match="already in a call"):
            source.copy_from(source, 3)


def test_going_back_to_marks_is_at_once(tiny: Engine) -> None:
    ids = np.arange(900) * 7 % 500 + 3
    with tiny.session(context=1024) as session:
        session.prefill(ids[:900], checkpoints=[100, 250, 900])
        assert {100, 250, 900} <= set(session.checkpoints)
        targets, wanted = (80, 100, 101, 250, 600, 890, 900), [0, 100, 100, 250, 250, 890, 900]
        assert [session.resume_point(at) for at in targets] == wanted
        assert session.resume_point(85) == 85  # within the slack of the checkpoint at 100
        session.rewind(250)
        assert session.checkpoints[-1] == 250


def test_turns_stay_at_hand(tiny: Engine) -> None:
    """Of many turns, those are let go first that lie close to others: far back, or after short ones."""
    with tiny.session(context=8192) as session:
        ends = []
        for turn in range(40):
            session.prefill([turn + 3] * (20 + turn % 3 * 30))
            ends.append(session.position)
        kept = session.checkpoints
        assert len(kept) == 16
        gaps = np.diff([0, *kept, ends[-1]])
        assert gaps.max() <= 10 * ends[-1] / 40


# The pool


def test_a_conversation_goes_on_in_its_session(engine: Engine) -> None:
    pool(engine)
    first = words(300)
    got, cached = answer(engine, first)
    assert cached == 0
    answer(engine, words(300))
    more = [*first, *got, *words(20)]
    again, cached = answer(engine, more)
    assert cached == len(first) + len(got)
    assert again == alone(engine, more)


def test_an_answer_that_is_told_differently_goes_on_too(engine: Engine) -> None:
    """As where reasoning is left out: the session goes back to the end of the prompt, which is at once."""
    pool(engine, sessions=1)
    first = words(300)
    answer(engine, first, 40)
    more = [*first, *words(30)]
    again, cached = answer(engine, more)
    assert cached == len(first)
    assert again == alone(engine, more)


def test_a_shared_beginning_is_copied(engine: Engine) -> None:
    """Two conversations with one system text: neither spoils the other."""
    pool(engine, sessions=3)
    user = engine.tokenizer.token_id("<｜User｜>")
    assert user is not None
    a, b = [*SYSTEM, user, *words(100)], [*SYSTEM, user, *words(80)]
    got_a, _ = answer(engine, a)
    got_b, cached = answer(engine, b)
    assert cached == len(SYSTEM)
    assert got_b == alone(engine, b)
    for ids, got in ((a, got_a), (b, got_b)):
        more = [*ids, *got, *words(9)]
        again, cached = answer(engine, more)
        assert cached == len(ids) + len(got)
        assert again == alone(engine, more)


def test_the_longest_unused_makes_room(engine: Engine) -> None:
    pool(engine, sessions=2)
    talks = [words(100) for _ in range(3)]
    for talk in talks:
        answer(engine, talk)
    assert answer(engine, [*talks[1], 5])[1] > 0
    assert answer(engine, [*talks[2], 5])[1] > 0
    assert answer(engine, [*talks[0], 5])[1] == 0


def test_a_lease_is_given_back_once(engine: Engine) -> None:
    shared = pool(engine, sessions=1)
    ids = np.asarray(words(20), np.int32)
    with shared.acquire(ids) as first:
        first.release()
        second = shared.acquire(ids)
    cancel = Cancel()
    threading.Timer(0.3, cancel.ask).start()
    with pytest.raises(ds4py.Cancelled):  # the session is the second one's
        shared.acquire(ids, cancel)
    second.release()


def test_threads_get_one_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*args: Any, **options: Any) -> SessionPool:
        time.sleep(0.05)
        return SessionPool(*args, **options)

    monkeypatch.setattr("ds4py.runtime.engine.SessionPool", slow)
    with Engine() as opened, ThreadPoolExecutor(8) as threads:
        start = threading.Barrier(8)
        pools = list(threads.map(lambda _: (start.wait(60), opened.pool)[1], range(8)))
        assert len(set(map(id, pools))) == 1


def test_wrong_pools(engine: Engine) -> None:
    with pytest.raises(ds4py.RequestError, match="sessions is 0"):
        SessionPool(engine, sessions=0)
    closed = SessionPool(engine)
    closed.close()
    with pytest.raises(ds4py.RequestError, match="pool is closed"):
        closed.acquire(np.array([1, 2], np.int32))


# The disk


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def test_turn_five_starts_at_once_and_after_a_restart(engine: Engine, tmp_path: Path) -> None:
    talk = words(1200)
    pool(engine, cache_dir=tmp_path)
    for _ in range(4):
        got, _ = answer(engine, talk)
        talk = [*talk, *got, *words(30)]
    wanted = alone(engine, talk)

    def start() -> tuple[float, int]:
        began = time.process_time()
        stream = engine.complete(talk, max_tokens=8, sampling=GREEDY, draft="dspark", draft_length=3)
        next(stream)
        took = time.process_time() - began
        assert [t for piece in stream for t in piece.tokens] == wanted[1:]
        return took, stream.usage.cached_tokens

    live, cached = start()
    assert cached >= len(talk) - 40
    pool(engine, cache_dir=tmp_path)  # closes the other one, as the end of a process does
    assert files(tmp_path)
    restarted, cached = start()
    assert cached >= len(talk) - 40
    pool(engine)
    whole, cached = start()
    assert cached == 0
    assert live < whole / 4
    assert restarted < whole / 4


def test_those_that_make_room_are_put_away(engine: Engine, tmp_path: Path) -> None:
    pool(engine, sessions=1, cache_dir=tmp_path)
    talks = [words(150) for _ in range(3)]
    answers = [answer(engine, talk)[0] for talk in talks]
    assert len(files(tmp_path)) == 2
    for talk, got in zip(talks, answers, strict=True):
        more = [*talk, *got, 77]
        again, cached = answer(engine, more)
        assert cached == len(talk) + len(got)
        assert again == alone(engine, more)


def test_marks_come_back_from_disk(engine: Engine, tmp_path: Path) -> None:
    """After a restart, too, an answer that is told differently costs nothing but itself."""
    talk = words(200)
    pool(engine, cache_dir=tmp_path)
    answer(engine, talk, 60)
    pool(engine, cache_dir=tmp_path)
    more = [*talk, *words(20)]
    again, cached = answer(engine, more)
    assert cached == len(talk)
    assert again == alone(engine, more)


def test_the_limit_keeps_the_latest(engine: Engine, tmp_path: Path) -> None:
    pool(engine, sessions=1, cache_dir=tmp_path)
    talks = [words(150) for _ in range(4)]
    for talk in talks:
        answer(engine, talk)
    engine.pool.close()
    size = max(path.stat().st_size for path in files(tmp_path))
    for age, path in enumerate(sorted(files(tmp_path), key=lambda path: path.stat().st_mtime_ns)):
        os.utime(path, (1000 + age, 1000 + age))
    pool(engine, sessions=1, cache_dir=tmp_path, cache_bytes=2 * size)
    answer(engine, words(150))
    engine.pool.close()
    assert len(files(tmp_path)) == 2
    pool(engine, sessions=1, cache_dir=tmp_path)
    assert [answer(engine, [*talk, 7])[1] > 0 for talk in talks] == [False, False, False, True]


def test_a_session_that_somebody_saved_there_stays(engine: Engine, tmp_path: Path) -> None:
    own = tmp_path / "mine.ds4state"
    own.write_bytes(b"x" * 1000)
    os.utime(own, (1000, 1000))
    pool(engine, cache_dir=tmp_path, cache_bytes=1)
    answer(engine, words(100))
    engine.pool.close()
    assert files(tmp_path) == [own]


@pytest.mark.parametrize("context", [None, 256])
def test_what_cannot_be_loaded_now_stays(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, context: int | None
) -> None:
    """Where there is no room, and where the context is smaller than another process's was."""
    talk = words(300)
    pool(engine, cache_dir=tmp_path)
    answer(engine, talk)
    engine.pool.close()
    kept = files(tmp_path)

    def full(*_: object, **__: object) -> Session:
        raise ds4py.BackendError("no room")

    if context is None:
        monkeypatch.setattr(engine, "load_session", full)
    engine.pool = SessionPool(engine, cache_dir=tmp_path, context=context)
    assert answer(engine, talk[:200])[1] == 0
    assert len(kept) == 1 and kept[0].exists()


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "foreign"])
def test_a_damaged_or_foreign_file_is_a_miss_and_goes(
    engine: Engine, pair: Engine, tmp_path: Path, damage: str
) -> None:
    talk = words(150)
    pool(engine, cache_dir=tmp_path)
    answer(engine, talk)
    engine.pool.close()
    (path,) = files(tmp_path)
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[-1000] ^= 16
    if damage == "foreign":
        with pair.session() as session:
            session.prefill([token % 500 for token in talk])
            session.save(path)
            data = bytearray(path.read_bytes())
            data[96 : 96 + 4 * len(talk)] = np.asarray(talk, np.int32).tobytes()
    path.write_bytes(data[: {"cut": len(data) - 9, "empty": 0}.get(damage, len(data))])
    pool(engine, cache_dir=tmp_path)
    more = [*talk, 5]
    got, cached = answer(engine, more)
    assert cached == 0
    assert got == alone(engine, more)
    assert not path.exists()


def test_what_was_never_finished_goes_after_an_hour_and_other_files_stay(engine: Engine, tmp_path: Path) -> None:
    for name, age in (("old.ds4part", 4000), ("new.ds4part", 10), ("film.part", 4000)):
        (tmp_path / name).write_bytes(b"x")
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    pool(engine, cache_dir=tmp_path)
    answer(engine, words(100))
    engine.pool.close()
    left = sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".ds4state")
    assert left == ["film.part", "new.ds4part"]


@pytest.mark.skipif(os.name == "nt", reason="permissions are POSIX's")
def test_a_new_folder_is_the_users_alone(engine: Engine, tmp_path: Path) -> None:
    pool(engine, cache_dir=tmp_path / "states")
    answer(engine, words(100))
    engine.pool.close()
    assert (tmp_path / "states").stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_written_is_refused_at_the_start(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for folder in (file, file / "folder"):
        with pytest.raises(ds4py.RequestError, match=r"\(cache_dir\), .*file.*: .*: name a folder"):
            SessionPool(engine, cache_dir=folder)
        with pytest.raises(ds4py.RequestError, match="cache_dir"):
            Engine(cache_dir=folder)
    SessionPool(engine, cache_dir=tmp_path / "new" / "folder").close()
    assert files(tmp_path / "new" / "folder") == []


def test_a_folder_that_goes_away_later_is_no_error(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    pool(engine, sessions=1, cache_dir=folder)
    folder.rmdir()
    folder.write_text("")
    talk = words(100)
    assert answer(engine, talk)[0] == alone(engine, talk)
    assert answer(engine, words(100))[1] == 0


def test_a_saved_session_in_another_context(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "state"
    with engine.session(context=512) as session:
        session.prefill(SYSTEM, checkpoints=[50])
        session.save(path, checkpoints=[50, 60])
        wanted = session.logits()
    with pytest.raises(ds4py.FormatError, match="200 positions, more than the context of 100"):
        engine.load_session(path, context=100)
    loaded: Session
    with engine.load_session(path, context=1024) as loaded:
        assert loaded.context == 1024
        assert loaded.checkpoints == [50]
        np.testing.assert_array_equal(loaded.logits(), wanted)
        loaded.rewind(50)
        loaded.prefill(SYSTEM[50:])
        np.testing.assert_array_equal(loaded.logits(), wanted)
