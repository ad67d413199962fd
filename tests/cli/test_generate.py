from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Lumi

Speaker = tuple[Path, Path]


def test_text_is_streamed_behind_the_prompt(lumi: Lumi, speaker: Speaker) -> None:
    plan, weights = speaker
    said = lumi("generate", plan, "--weights", weights, "--prompt", "ab", "--max-tokens", 3)
    assert (said.status, said.out) == (0, "abcde\n")
    assert said.err.splitlines()[-1].startswith("3 prompt tokens at ")
    assert "ended by length" in said.err


def test_json_has_tokens_text_and_speeds(lumi: Lumi, speaker: Speaker) -> None:
    plan, weights = speaker
    report = lumi("generate", plan, "--weights", weights, "--prompt", "ab", "--json", "--logits", 2).json
    assert report.pop("prefill_tok_s") > 0
    assert report.pop("decode_tok_s") > 0
    assert report.pop("counters")["captures"] == 0
    assert report == {
        "prompt_tokens": [2, 4, 5],
        "tokens": [6, 7, 8, 9, 10, 11],
        "text": "cdefgh",
        "reason": "end",
        "logits": [[6, pytest.approx(1.0)], [0, pytest.approx(0.0)]],
    }


def test_more_tokens_take_more_launches_and_no_more_memory(lumi: Lumi, speaker: Speaker) -> None:
    plan, weights = speaker
    command = ("generate", plan, "--weights", weights, "--prompt", "a", "--ignore-end", "--json")
    few, many = (lumi(*command, "--max-tokens", count).json["counters"] for count in (3, 9))
    assert many["launches"] - few["launches"] == 6
    for name in ("captures", "device_allocations", "host_allocations", "bytes_within"):
        assert many[name] == few[name], name


def test_a_prompt_may_be_ids(lumi: Lumi, speaker: Speaker) -> None:
    plan, weights = speaker
    report = lumi(
        "generate", plan, "--weights", weights, "--tokens", " 2 9", "--max-tokens", 2, "--json"
    ).json
    assert (report["prompt_tokens"], report["tokens"], report["text"]) == ([2, 9], [10, 11], "gh")


def test_a_stop_text_ends_it(lumi: Lumi, speaker: Speaker) -> None:
    plan, weights = speaker
    report = lumi("generate", plan, "--weights", weights, "--prompt", "a", "--stop", "e", "--json").json
    assert (report["text"], report["reason"]) == ("bcd", "stop")


def test_draws_depend_on_the_seed(lumi: Lumi, speaker: Speaker) -> None:
    plan, weights = speaker
    drawn = [
        lumi(
            *("generate", plan, "--weights", weights, "--prompt", "a", "--max-tokens", 12, "--ignore-end"),
            *("--temperature", 5, "--seed", seed, "--json"),
        ).json["tokens"]
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


WRONG = {
    "no plan": (["none.lumiplan", "--prompt", "a"], 1, "plan error: there is no plan none.lumiplan"),
    "no prompt": (["PLAN"], 2, "one of the arguments --prompt --tokens is required"),
    "two prompts": (["PLAN", "--prompt", "a", "--tokens", "1"], 2, "not allowed with argument"),
    "empty prompt": (["PLAN", "--tokens", ""], 1, "prompt error: the prompt has no tokens"),
    "ids that are none": (["PLAN", "--tokens", "1 b"], 1, "prompt error: --tokens: invalid literal"),
    "unknown id": (["PLAN", "--tokens", "12"], 1, "prompt error: there is no token 12"),
    "long prompt": (
        ["PLAN", "--prompt", "abcdabcdabcdabcd"],
        1,
        "prompt error: the prompt has 17 tokens, the context",
    ),
    "temperature": (["PLAN", "--prompt", "a", "--temperature", "-1"], 1, "sampling error: temperature is -1"),
    "top-p": (["PLAN", "--prompt", "a", "--top-p", "0"], 1, "sampling error: top-p is 0"),
    "max-tokens": (["PLAN", "--prompt", "a", "--max-tokens", "0"], 1, "sampling error: max-tokens is 0"),
    "logits": (["PLAN", "--tokens", "1", "--logits", "-1"], 2, "argument --logits: '-1' is no count"),
    "tokenizer": (["PLAN", "--prompt", "a", "--tokenizer", "none.json"], 1, "tokenizer error: none.json"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_is_named(lumi: Lumi, speaker: Speaker, case: str) -> None:
    plan, weights = speaker
    arguments, status, message = WRONG[case]
    said = lumi("generate", *[str(plan) if a == "PLAN" else a for a in arguments], "--weights", weights)
    assert (said.status, said.out) == (status, "")
    assert message in said.err


def test_a_plan_that_is_no_language_model_is_refused(
    lumi: Lumi, plan: Path, speaker: Speaker, tmp_path: Path
) -> None:
    import numpy as np
    from safetensors.numpy import save_file

    save_file({"weight": np.zeros(4, np.float32)}, tmp_path / "w.safetensors")
    said = lumi("generate", plan, "--weights", tmp_path / "w.safetensors", "--tokens", "1")
    assert said.status == 1
    assert said.err == (
        "plan error: scale is no language model: it has no input tokens i32 [batch seq] "
        "and no output logits [… vocab]\n  = lumi run calls any plan\n"
    )
