"""The command line, run as a user runs it: exit codes, what goes to which stream, and interruption."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import COMMAND
from gguf_tools import endless
from paths import GOLDEN, ROOT
from reading import read_some, read_until

import ds4py
from ds4py.cli import build_parser

TARGET = GOLDEN / "tiny-target-f32.gguf"
DRAFTER = GOLDEN / "tiny-drafter-f32.gguf"
VOCAB = 512


@pytest.fixture
def generated(cli):
    """Runs `ds4py generate --json ARGS` on the golden target and gives the object."""

    def run(*args: object, text: str = "") -> dict[str, Any]:
        done = cli("generate", "-m", TARGET, "-t", 1, "--json", *args, text=text)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def assert_fails(done: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    """One line on stderr that holds `words`, nothing on stdout, and the exit code."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if line.startswith("ds4py: error: ")]
    assert len(lines) == 1 and "Traceback" not in done.stderr, done.stderr
    for word in words:
        assert word in lines[0]


class TestGenerate:
    def test_json_has_every_field(self, generated):
        found = generated("--prompt-ids", "5,6,7,8", "-n", 6, "--seed", 3)
        assert set(found) == {
            "model",
            "drafter",
            "prompt_tokens",
            "ids",
            "text",
            "finish_reason",
            "seed",
            "statistics",
            "speculation",
        }
        assert found["model"]["path"] == str(TARGET) and found["model"]["embedded"] is False
        assert found["drafter"] is None and found["speculation"]["drafter"] == "off"
        assert found["prompt_tokens"] == 4
        assert len(found["ids"]) == 6 and all(0 <= token < VOCAB for token in found["ids"])
        assert found["finish_reason"] == "length"
        assert found["seed"] == 3
        assert found["statistics"]["generated_tokens"] == 6
        assert found["statistics"]["tokens_per_second"] > 0

    def test_greedy_is_deterministic_whatever_the_seed(self, generated):
        ids = [generated("-p", "abc", "-n", 12, "--temp", 0, "--seed", seed)["ids"] for seed in (1, 2)]
        assert ids[0] == ids[1]

    def test_greedy_follows_the_golden_continuation(self, generated):
        golden = np.load(GOLDEN / "target-golden.npz")
        prompt = golden["tokens"][: int(golden["greedy_prefix_len"])]
        flags = ("--kv-dtype", "f32", "--temp", 0, "-n", 16, "-c", 512)
        found = generated("--prompt-ids", ",".join(map(str, prompt)), *flags)
        assert found["ids"] == golden["greedy"][:16].tolist()

    def test_the_reported_seed_gives_the_same_text_again(self, generated):
        first = generated("-p", "abc", "-n", 12)
        again = generated("-p", "abc", "-n", 12, "--seed", first["seed"])
        other = generated("-p", "abc", "-n", 12, "--seed", first["seed"] ^ 1)
        assert again["ids"] == first["ids"]
        assert other["ids"] != first["ids"]

    def test_text_streams_to_stdout_and_the_rest_to_stderr(self, cli, generated):
        flags = ("-p", "abc", "-n", 8, "--temp", 0)
        done = cli("generate", "-m", TARGET, "-t", 1, *flags)
        assert done.returncode == 0
        assert done.stdout == generated(*flags)["text"] + "\n"
        assert "tokens/s" in done.stderr and str(TARGET) in done.stderr
        quiet = cli("generate", "-m", TARGET, "-t", 1, "-q", *flags)
        assert quiet.stdout == done.stdout and quiet.stderr == ""

    def test_file_stdin_and_flag_give_the_same_prompt(self, generated, tmp_path):
        (tmp_path / "prompt.txt").write_text("one two\n")
        flags = ("-n", 4, "--temp", 0)
        found = [
            generated("-p", "one two", *flags),
            generated("-f", "prompt.txt", *flags),
            generated("-f", "-", *flags, text="one two\n"),
            generated(*flags, text="one two"),
        ]
        assert len({(each["prompt_tokens"], *each["ids"]) for each in found}) == 1

    def test_no_model_uses_the_embedded_one_and_says_so(self, cli):
        done = cli("generate", "-t", 1, "-p", "hello", "-n", 4, "--json")
        assert done.returncode == 0
        assert "embedded" in done.stderr
        assert json.loads(done.stdout)["model"]["embedded"] is True

    def test_the_embedded_model_has_a_drafter(self, cli):
        done = cli("generate", "-t", 1, "-p", "hello", "-n", 4)
        assert done.returncode == 0
        assert "drafter: contract dflash, 2 stages, block 5" in done.stderr
        assert "draft auto, width all that are proposed" in done.stderr
        assert "draft dspark+lookup: " in done.stderr
        assert "width auto" in cli("generate", "-t", 1, "-p", "hello", "-n", 4, "--width", "auto").stderr

    def test_stop_text_ends_the_output_before_it(self, generated):
        flags = ("-p", "abc", "-n", 24, "--temp", 0)
        text = generated(*flags)["text"]
        stop = text[3:5]
        found = generated(*flags, "--stop", stop)
        assert found["finish_reason"] == "stop"
        assert found["text"] == text[: text.index(stop)]

    def test_a_full_context_ends_with_length(self, generated):
        found = generated("--prompt-ids", "5,6,7,8", "-n", -1, "-c", 40, "--temp", 0)
        assert found["finish_reason"] == "length"
        assert 30 <= len(found["ids"]) <= 40


class TestDrafting:
    PROMPT = ("--prompt-ids", ",".join(["5,6,7,8,9,10,11"] * 8))

    def test_a_drafter_changes_the_speed_only(self, generated):
        flags = (*self.PROMPT, "-n", 30, "--temp", 0)
        plain = generated(*flags)
        for more in (("-md", DRAFTER), ("-md", DRAFTER, "--width", 2, "--draft-vocab", 0), ("--draft", "lookup")):
            assert generated(*flags, *more)["ids"] == plain["ids"]

    def test_json_tells_what_drafting_did(self, generated):
        found = generated(
            *self.PROMPT, "-n", 30, "--temp", 0, "-md", DRAFTER, "--draft", "dspark", "--width", 3, "--accept", "block"
        )
        assert found["drafter"]["path"] == str(DRAFTER)
        assert (found["drafter"]["contract"], found["drafter"]["taps"]) == ("dflash", [3, 4, 5])
        speculation = found["speculation"]
        assert speculation["drafter"] == "dspark"
        assert len(speculation["widths"]) == 4 and sum(speculation["widths"]) == speculation["cycles"]
        assert 1 + speculation["cycles"] + speculation["accepted"] == 30
        assert {"acceptance", "survival", "emitted_per_cycle", "accepted_by_position"} < set(speculation)
        assert speculation["draft_ms"]["total"] > 0 and speculation["verify_ms"]["median"] > 0

    def test_statistics_are_readable(self, cli):
        flags = ("-m", TARGET, "-md", DRAFTER, "-t", 1, *self.PROMPT, "-n", 8, "--temp", 0)
        done = cli("generate", *flags, "--draft", "dspark", "--width", 2)
        assert done.returncode == 0
        assert re.search(r"drafter: contract dflash, .*, noise 511, confidence yes, 2.4 MB \(.*drafter", done.stderr)
        assert re.search(r"draft dspark: \d\.\d\d tokens a cycle .* by position \d+% \d+%$", done.stderr, re.MULTILINE)
        assert re.search(r"cycles by width (\d:\d+ ?)+; median ms: draft [\d.]+, verify", done.stderr)

    def test_a_width_beyond_the_block_is_noted(self, cli):
        flags = ("generate", "-m", TARGET, "-t", 1, "-p", "a", "-n", 9, "--temp", 0)
        assert "--width 9 is more than the drafter proposes: 5" in cli(*flags, "-md", DRAFTER, "--width", 9).stderr
        assert "--width" not in cli(*flags, "-md", DRAFTER, "--width", 5).stderr
        assert "--width" not in cli(*flags, "--draft", "lookup", "--width", 8).stderr

    def test_policies_by_name(self, generated):
        flags = (*self.PROMPT, "-n", 30, "--temp", 0)
        plain = generated(*flags)["ids"]
        for width in ("auto", "confidence", "ewma", "staged"):
            found = generated(*flags, "-md", DRAFTER, "--width", width)
            assert found["ids"] == plain
            speculation = found["speculation"]
            assert speculation["drafter"] == "dspark+lookup"
            assert speculation["tokens_per_second"] > 0 and speculation["tried_ms"] >= 0

    def test_a_breaker_ends_poor_drafting(self, generated):
        found = generated(
            *self.PROMPT,
            "-n",
            40,
            "--temp",
            2,
            "--seed",
            1,
            "-md",
            DRAFTER,
            "--draft",
            "dspark",
            "--width",
            2,
            "--breaker",
            "0.9/4/64",
        )
        assert found["speculation"]["plain_cycles"] > 20

    def test_off_decodes_plainly(self, cli):
        done = cli("generate", "-m", TARGET, "-md", DRAFTER, "-t", 1, "-p", "a", "-n", 4, "--draft", "off")
        assert done.returncode == 0 and "draft off" not in done.stderr and "cycles" not in done.stderr

    def test_dspark_without_a_drafter(self, cli):
        assert_fails(cli("generate", "-m", TARGET, "-p", "a", "--draft", "dspark"), 2, "-md", "lookup")

    def test_a_drafter_that_does_not_fit(self, cli):
        hard = GOLDEN / "hard-target-f32.gguf"
        assert_fails(cli("generate", "-m", hard, "-md", DRAFTER, "-p", "a"), 3, DRAFTER.name)
        assert_fails(cli("generate", "-m", TARGET, "-md", TARGET, "-p", "a"), 3, TARGET.name, "-m")
        assert_fails(cli("generate", "-m", TARGET, "-md", "absent.gguf", "-p", "a"), 1, "absent.gguf")


class TestReplay:
    FLAGS = ("-m", TARGET, "-md", DRAFTER, "-t", 1, "-n", 24, *TestDrafting.PROMPT)

    def test_speculation_says_what_the_target_says(self, cli):
        for more in ((), ("--draft", "lookup"), ("--width", 1)):
            done = cli("replay", *self.FLAGS, *more)
            assert done.returncode == 0, done.stderr
            assert re.match(r"nspec=24 max_chunk=\d worst_argmax_gap=0\.000000 at=-1\n", done.stdout)
            assert "gives the same tokens" in done.stdout

    def test_json(self, cli):
        done = cli("replay", *self.FLAGS, "--draft", "lookup", "--json")
        found = json.loads(done.stdout)
        assert (found["nspec"], len(found["ids"]), found["worst_argmax_gap"], found["at"]) == (24, 24, 0.0, -1)
        assert 1 <= found["max_chunk"] <= 9
        assert (found["same_as_plain"], found["first_divergence"], found["divergence_lead"]) == (True, None, None)
        assert found["speculation"]["drafter"] == "lookup"

    def test_a_wrong_token_is_found(self, monkeypatch, capsys):
        """With a sampled text in the place of the greedy one, as a mistake in acceptance would give."""
        from ds4py.cli import main, replay

        greedy = replay.generate

        def wrong(args, session, prompt, **drafting):
            chunks = greedy(args, session, prompt, **drafting)
            return chunks if drafting["draft"] == "off" else [*chunks[:4], (5, 6)]

        monkeypatch.setattr(replay, "generate", wrong)
        flags = ["replay", *map(str, self.FLAGS), "--draft", "lookup", "--width", "0"]
        assert main([*flags, "--json"]) == 1
        found = json.loads(capsys.readouterr().out)
        assert found["nspec"] == 6 and found["worst_argmax_gap"] > 0 and found["at"] in (4, 5)
        assert found["first_divergence"] == 4 and 0 < found["divergence_lead"] <= found["worst_argmax_gap"] + 1e-6
        assert main([*flags, "--tolerance", str(found["worst_argmax_gap"] + 0.001)]) == 0
        assert "differs from token 4 on" in capsys.readouterr().out


class TestWrongUsage:
    @pytest.mark.parametrize(
        ("flags", "words"),
        [
            (["-p", "a", "-f", "x"], ["-f/--file", "-p/--prompt"]),
            (["-p", "a", "--prompt-ids", "1"], ["--prompt-ids", "-p/--prompt"]),
            (["-p", ""], ["empty"]),
            (["--prompt-ids", "1,x"], ["1,x"]),
            (["-p", "a", "-n", "many"], ["-n/--max-tokens", "many"]),
            (["-p", "a", "-n", "-2"], ["-n/--max-tokens", "-2"]),
            (["-p", "a", "-c", "0"], ["-c/--context"]),
            (["-p", "a", "--temp", "-1"], ["--temp"]),
            (["-p", "a", "--temp", "nan"], ["--temp"]),
            (["-p", "a", "--presence-penalty", "inf"], ["--presence-penalty"]),
            (["-p", "a", "--top-p", "1.5"], ["--top-p", "between 0 and 1"]),
            (["-p", "a", "--seed", "-1"], ["--seed"]),
            (["-p", "a", "--kv-dtype", "q8"], ["--kv-dtype"]),
            (["-p", "a", "--system", "s"], ["--system", "--chat"]),
            (["-p", "a", "--think"], ["--think", "--chat"]),
            (["-p", "a", "--chat", "--effort", "max"], ["--effort", "--think"]),
            (["--prompt-ids", "1", "--chat"], ["--chat", "--prompt-ids"]),
            (["-p", "a", "--unknown"], ["--unknown"]),
            (["-p", "a", "--draft", "mtp"], ["--draft", "lookup"]),
            (["-p", "a", "--width", "16"], ["--width", "between 0 and 15"]),
            (["-p", "a", "--width", "fast"], ["--width", "'fast' is not a width", "staged"]),
            (["-p", "a", "--breaker", "0.6"], ["--breaker", "0.60/32/64"]),
            (["-p", "a", "--breaker", "2/32/64"], ["--breaker", "between 0 and 1"]),
            (["-p", "a", "--draft-vocab", "-1"], ["--draft-vocab"]),
            (["-p", "a", "--accept", "typical"], ["--accept", "block"]),
        ],
    )
    def test_flags(self, cli, flags, words):
        assert_fails(cli("generate", *flags), 2, *words)

    def test_no_command(self, cli):
        assert_fails(cli(), 2, "COMMAND")

    def test_empty_standard_input(self, cli):
        assert_fails(cli("generate", text="\n"), 2, "empty")

    def test_prompt_that_is_not_utf8(self, cli):
        assert_fails(cli("generate", text=b"ab\xff"), 2, "standard input", "offset 2")

    @pytest.mark.parametrize("token", [VOCAB, -1, 2**40])
    def test_prompt_ids_out_of_range(self, cli, token):
        assert_fails(cli("generate", "-m", TARGET, f"--prompt-ids=1,{token}"), 2, str(token))

    def test_prompt_longer_than_the_context(self, cli):
        ids = ",".join(["5"] * 50)
        assert_fails(cli("generate", "-m", TARGET, "--prompt-ids", ids, "-c", 40), 2, "50", "40")

    def test_unknown_device(self, cli):
        assert_fails(cli("generate", "-p", "a", "--device", "abacus"), 2, "abacus")


class TestBadFiles:
    @pytest.mark.parametrize("command", [["generate", "-p", "a", "-m"], ["inspect"], ["perplexity", "-f", "-"]])
    def test_missing_model(self, cli, command):
        assert_fails(cli(*command, "absent.gguf", text="abc"), 1, "absent.gguf", "No such file")

    def test_missing_prompt_file(self, cli):
        assert_fails(cli("generate", "-f", "absent.txt"), 1, "absent.txt", "No such file")

    def test_directory_as_model(self, cli, tmp_path):
        assert_fails(cli("generate", "-p", "a", "-m", tmp_path), 1, str(tmp_path))

    @pytest.mark.parametrize("kept", [0, 3, 1000, 6_000_000])
    def test_truncated_model(self, cli, tmp_path, kept):
        (tmp_path / "cut.gguf").write_bytes(TARGET.read_bytes()[:kept])
        assert_fails(cli("generate", "-p", "a", "-m", "cut.gguf"), 3, "cut.gguf")

    def test_drafter_as_model(self, cli):
        assert_fails(cli("generate", "-p", "a", "-m", DRAFTER), 3, DRAFTER.name, "drafter")


class TestInspect:
    def test_json_of_a_target(self, cli):
        done = cli("inspect", TARGET, "-c", 1000, "--json", "--tensors")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert (found["architecture"], found["target"], found["bytes"]) == ("deepseek4", True, TARGET.stat().st_size)
        numbers = found["hyperparameters"]
        assert (numbers["layers"], numbers["hidden"], numbers["vocab"], numbers["experts"]) == (6, 64, VOCAB, 16)
        assert found["layers_by_ratio"] == {"0": 2, "4": 2, "128": 2}
        assert set(found["roles"]) >= {"embedding", "attention", "routed experts", "indexer", "compressor"}
        assert "other" not in found["roles"]
        for groups in (found["types"], found["roles"]):
            assert sum(group["bytes"] for group in groups.values()) == sum(each["bytes"] for each in found["tensors"])
            assert sum(group["parameters"] for group in groups.values()) == found["parameters"]

    def test_memory_grows_with_the_context(self, cli):
        def memory(*flags: object) -> dict[str, int]:
            found = json.loads(cli("inspect", TARGET, "--json", *flags).stdout)["memory"]["devices"]
            assert [each["device"] for each in found] == ["CPU"]
            return found[0]

        small, large, wide = memory("-c", 1024), memory("-c", 65536), memory("-c", 65536, "--kv-dtype", "f32")
        assert small["weights"] == large["weights"] > 0
        assert small["state"] < large["state"] < wide["state"]
        assert large["needed"] == large["state"] + large["scratch"]
        assert large["fits"]

    def test_text_of_a_target(self, cli):
        done = cli("inspect", TARGET)
        assert done.returncode == 0
        for word in ("deepseek4", "routed experts", "ratio 4", "weights", "scratch", "F32"):
            assert word in done.stdout

    def test_a_drafter_is_described_and_named(self, cli):
        done = cli("inspect", DRAFTER)
        assert done.returncode == 0
        assert "dflash" in done.stdout and "not a DS4 target" in done.stdout and "drafter head" in done.stdout

    def test_a_file_that_is_no_gguf(self, cli, tmp_path):
        (tmp_path / "text.gguf").write_text("this is not a model\n" * 10)
        assert_fails(cli("inspect", "text.gguf"), 3, "text.gguf")


class TestPerplexity:
    TEXT = "The quick brown fox jumps over the lazy dog. " * 3

    def scored(self, cli, *flags: object) -> dict[str, float]:
        done = cli("perplexity", TARGET, "-f", "-", "-t", 1, "--json", "--kv-dtype", "f32", *flags, text=self.TEXT)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def test_every_token_is_scored_once_whatever_the_windows(self, cli):
        whole, windows = self.scored(cli, "-c", 512), self.scored(cli, "-c", 24, "--stride", 8)
        assert whole["tokens"] == windows["tokens"] > 24
        assert whole["bytes"] == windows["bytes"] == len(self.TEXT)
        assert whole["negative_log_likelihood"] != windows["negative_log_likelihood"]

    def test_against_logits_of_one_evaluation(self, cli):
        with ds4py.Engine(TARGET) as engine, engine.session(context=512, kv_dtype="f32") as session:
            tokens = [engine.tokenizer.bos_id, *engine.tokenizer.encode(self.TEXT, add_bos=False)]
            logits = session.evaluate(tokens[:-1]).astype(np.float64)
        log_probabilities = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        wanted = -log_probabilities[np.arange(len(tokens) - 1), tokens[1:]]
        found = self.scored(cli, "-c", 512)
        assert found["tokens"] == len(wanted)
        assert found["negative_log_likelihood"] == pytest.approx(wanted.mean(), abs=1e-4)
        assert found["perplexity"] == pytest.approx(np.exp(wanted.mean()), rel=1e-4)
        assert found["bits_per_byte"] == pytest.approx(wanted.sum() / np.log(2) / len(self.TEXT), rel=1e-4)

    def test_wrong_windows(self, cli):
        assert_fails(cli("perplexity", TARGET, "-f", "-", "-c", 16, "--stride", 16, text=self.TEXT), 2, "--stride")

    def test_too_little_text(self, cli):
        assert_fails(cli("perplexity", TARGET, "-f", "-", text=""), 2, "too short")


class TestEndings:
    def start(self, tmp_path: Path, *flags: object) -> subprocess.Popen[bytes]:
        # Much text, and nothing in it ends it.
        model = endless(TARGET, tmp_path / "endless.gguf")
        flags = ("-p", "abc", "-n", "-1", "-c", "8192", "-t", "1", "--temp", "0", *flags)
        command = [*COMMAND, "generate", "-m", str(model), *map(str, flags)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path)

    @pytest.mark.skipif(os.name == "nt", reason="SIGINT is sent otherwise there")
    def test_ctrl_c_while_generating(self, tmp_path):
        process = self.start(tmp_path)
        begun = read_some(process.stdout.fileno())
        process.send_signal(signal.SIGINT)
        rest, messages = process.communicate(timeout=60)
        assert process.returncode == 130
        assert (begun + rest).endswith(b"\n")
        assert b"interrupted" in messages and b"Traceback" not in messages

    @pytest.mark.skipif(os.name == "nt", reason="SIGINT is sent otherwise there")
    def test_ctrl_c_with_json_prints_what_there_is(self, tmp_path):
        for seconds in (0.2, 1, 5, 20):  # until it has begun to generate, which nothing tells
            process = self.start(tmp_path, "--json")
            read_until(process.stderr.fileno(), b"model .*\n")
            time.sleep(seconds)
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=60)
            if process.returncode == 130 and output and json.loads(output)["ids"]:
                break
        assert process.returncode == 130
        found = json.loads(output)
        assert found["finish_reason"] == "interrupted"
        # The token that was being made when the signal came may be counted without being printed.
        assert found["statistics"]["generated_tokens"] - len(found["ids"]) in (0, 1)
        assert len(found["ids"]) > 0

    @pytest.mark.skipif(os.name == "nt", reason="pipes end otherwise there")
    def test_closed_pipe_ends_silently(self, tmp_path):
        process = self.start(tmp_path, "-q")
        read_some(process.stdout.fileno())
        process.stdout.close()
        process.stdout = None
        _, messages = process.communicate(timeout=60)
        assert process.returncode == 141
        assert messages == b""


@pytest.mark.fast
class TestFirstSteps:
    def test_help_names_the_commands(self, cli):
        done = cli("--help")
        assert done.returncode == 0
        assert all(
            word in done.stdout for word in ("generate", "inspect", "perplexity", "profile", "replay", "exit codes")
        )

    def test_version_is_that_of_the_project(self, cli):
        project = (ROOT / "pyproject.toml").read_text()
        version = re.search(r'^version = "(.+)"$', project, re.MULTILINE)[1]
        assert re.fullmatch(rf"ds4py {re.escape(version)} \(([0-9a-f]{{7,}}|unknown)\)\n", cli("--version").stdout)


def test_whole_numbers_are_n_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        build_parser().parse_args(["generate", "--help"])
    shown = capsys.readouterr().out
    for flag in ("--top-k N ", "--seed N ", "--repeat-last-n N ", "--top-p X "):
        assert f"  {flag}" in shown


def test_the_help_imports_nothing_that_takes_long() -> None:
    """What only some commands need, they import themselves."""
    long = ("asyncio", "jinja2", "rich", "prompt_toolkit", "fastapi", "uvicorn", "gguf", "llguidance", "matplotlib")
    script = f"import sys\nfrom ds4py import cli\ncli.build_parser()\nprint([m for m in {long} if m in sys.modules])"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, cwd=os.sep, timeout=60
    )
    assert done.stdout.strip() == "[]", done.stderr
