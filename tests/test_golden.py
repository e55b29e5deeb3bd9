"""The numbers of contrapca 0.1.0 (commit 472a48c), met by this version: golden.py has the cases and the tolerances."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

import golden

OLD = golden.read(Path(__file__).with_name("golden.json"))


def differences(name, old, new):
    return [str(found) for found in golden.compare_case(name, old, new) if not found.met]


def test_the_file_has_the_cases():
    assert list(OLD) == list(golden.CASES)
    assert sum(name.startswith("simulated ") for name in OLD) == 50
    assert sum("data" in case.needs for case in golden.CASES.values()) == 9


def of_golden_file(name):
    return pytest.param(name, marks=pytest.mark.slow) if name.startswith(("posterior", "digits")) else name


@pytest.mark.parametrize("name", [of_golden_file(name) for name in golden.CASES])
def test_same_numbers(name, request):
    for needed in golden.CASES[name].needs:
        if needed == "data":
            request.getfixturevalue("data_folder")
        else:
            request.getfixturevalue("need")(needed)
    assert not differences(name, OLD[name], golden.compute(name))


@pytest.mark.parametrize("kind", golden.TOLERANCES)
def test_a_changed_number_is_caught(kind):
    """The control: of every kind, a number twice its tolerance away, a lost one and one too many."""
    name, key = next((name, key) for name, found in OLD.items() for key in found if found[key][0] == kind)
    old = OLD[name]
    assert not differences(name, old, copy.deepcopy(old))

    new = copy.deepcopy(old)
    vector = new[key][1]
    largest = max(range(len(vector)), key=lambda k: abs(vector[k]))
    step = 2 * golden.TOLERANCES[kind] * abs(vector[largest])
    if kind == "exact":
        step = 1
    elif kind == "sampled":
        step = 2 * 2**0.5 * golden.TOLERANCES[kind] * new[key][2][largest]
    vector[largest] += step
    assert [key in line for line in differences(name, old, new)] == [True]
    vector[largest] -= 0.8 * step  # 0.4 of the tolerance: met, but for whole numbers
    assert len(differences(name, old, new)) == (kind == "exact")

    lost = {other: found for other, found in old.items() if other != key}
    assert len(differences(name, old, lost)) == len(differences(name, lost, old)) == 1
    new[key] = (kind, ["nan"] * len(vector), *old[key][2:])
    assert len(differences(name, old, new)) == 1
