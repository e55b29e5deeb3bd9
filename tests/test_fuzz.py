"""A little of the fuzzing that CI does for longer, and controls: what is wrong is noticed."""

import os
import sys

import numpy as np
import pytest

import fuzz
from contrapca.exceptions import ModelFileError


@pytest.mark.parametrize("number", range(3 * len(fuzz.ATTEMPTS)))
def test_attempts(number, need):
    need("polars")
    kind, end = fuzz.attempt(number)
    assert kind == fuzz.ATTEMPTS[number % len(fuzz.ATTEMPTS)].__name__
    assert end


def test_an_attempt_is_made_by_its_number():
    content = bytes(range(200))
    assert fuzz.damaged(np.random.default_rng(5), content) == fuzz.damaged(np.random.default_rng(5), content)
    assert len({fuzz.damaged(np.random.default_rng(number), content) for number in range(50)}) > 40


def test_another_model_is_noticed(monkeypatch, tmp_path):
    other = fuzz.THINGS["PPCA"]().set_params(scale="group")
    monkeypatch.setattr(fuzz.contrapca, "load", lambda path: other)
    with pytest.raises(AssertionError, match="another model"):
        fuzz.a_damaged_model(np.random.default_rng(0), tmp_path)


def test_an_error_that_does_not_name_the_file_is_noticed(monkeypatch, tmp_path):
    def load(path):
        raise ModelFileError("something is wrong")

    monkeypatch.setattr(fuzz.contrapca, "load", load)
    with pytest.raises(AssertionError, match="something is wrong"):
        fuzz.a_rewritten_model(np.random.default_rng(0), tmp_path)


@pytest.mark.parametrize(("code", "err"), [(1, "contrapca: no."), (2, "Traceback\n"), (2, "contrapca: a\nb\n")])
def test_a_bad_refusal_is_noticed(monkeypatch, tmp_path, code, err):
    monkeypatch.setattr(fuzz.cli, "main", lambda arguments: print(err, end="", file=sys.stderr) or code)
    with pytest.raises(AssertionError):
        fuzz.command([], tmp_path / "out")


def dies(first, seconds, number, failed, ended):
    """As `fuzz.work`, but the third attempt fails and the fourth kills the process."""
    for number.value in range(first, 5):
        if number.value == 2:
            failed.append(2)
        if number.value == 3:
            os._exit(1)
        ended["done"] = ended.get("done", 0) + 1


@pytest.mark.slow
def test_a_death_is_noticed(capfd):
    ended, failed = fuzz.run(0, 60, dies)
    assert failed == [2, 3]
    assert ended == {"done": 4}
    assert "attempt 3: the process ended with 1" in capfd.readouterr().out
