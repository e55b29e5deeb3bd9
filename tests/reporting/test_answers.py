"""What the first screen says of each component, as data."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from contrapca import PCPCA, Study
from contrapca.datasets import make_hidden_clusters
from contrapca.reporting._answers import SUPPORT, support_of
from contrapca.reporting._report import summarize


def said(study, **given):
    return summarize(study, PCPCA(2, gamma=0.3), gammas=2, **{"test": False} | given)


@pytest.fixture(scope="module")
def groups():
    data = make_hidden_clusters(120, 100, 8, random_state=0)
    return data.foreground, data.background, data.labels


def test_labels_hold_a_part_of_each_component(groups):
    X, Y, labels = groups
    found = said(Study(X, background=Y, labels=labels, label_name="kind"))
    Z = found.subject.latents
    for k, entry in enumerate(found["components"]):
        own = [Z[labels == c, k] for c in range(4)]
        between = sum(len(z) * (z.mean() - Z[:, k].mean()) ** 2 for z in own) / np.sum((Z[:, k] - Z[:, k].mean()) ** 2)
        assert entry["label"]["share"] == pytest.approx(between)
        means = [z.mean() for z in own]
        assert entry["label"]["highest"] == str(np.argmax(means))
        assert entry["label"]["lowest"] == str(np.argmin(means))
        assert entry["label"]["is_clear"] is True
    silent = said(Study(X, background=Y, labels=np.random.default_rng(0).permutation(labels)))
    assert [entry["label"]["is_clear"] for entry in silent["components"]] == [False, False]
    assert [entry["label"] for entry in said(Study(X, background=Y))["components"]] == [
        None,
        None,
    ]  # clusters say nothing
    names = [f"sample {i}" for i in range(120)]
    assert [entry["label"] for entry in said(Study(X, background=Y, labels=names))["components"]] == [None, None]


def test_labels_of_few_donors_may_be_chance():
    """Donors differ, and labels are those of whole donors: 60 rows a label are 2 donors a label."""
    rng = np.random.default_rng(0)
    donors = np.repeat(np.arange(4), 30)
    X = rng.standard_normal((120, 5))
    X[:, 0] += np.array([4, 3, -3, -4])[donors]
    Y, labels = rng.standard_normal((100, 5)), np.array(["a", "a", "b", "b"])[donors]
    by_rows = said(Study(X, background=Y, labels=labels))["components"][0]["label"]
    by_donors = said(Study(X, background=Y, labels=labels, blocks=(donors, 10 + np.arange(100) % 5)))
    found = by_donors["components"][0]["label"]
    assert by_rows["share"] > 0.5
    assert found["share"] == pytest.approx(by_rows["share"])
    assert (by_rows["is_clear"], found["is_clear"]) == (True, False)
    names = Study(X, background=Y, labels=donors, blocks=(donors, 10 + np.arange(100) % 5))
    assert said(names)["components"][0]["label"]["is_clear"] is True  # that these donors differ is no chance


def test_numbers_are_correlated_by_rank(groups):
    X, Y, _ = groups
    Z = said(Study(X, background=Y)).subject.latents
    dose = np.exp(Z[:, 0]) + np.where(np.arange(120) < 5, np.nan, 0)
    found = said(Study(X, background=Y, labels=dose, label_name="dose"))["components"]
    for k in range(2):
        expected = spearmanr(dose[5:], Z[5:, k]).statistic
        assert found[k]["label"]["correlation"] == pytest.approx(expected)
    assert found[0]["label"]["correlation"] > 0.999
    assert found[0]["label"]["is_clear"] is True
    noise = np.random.default_rng(1).standard_normal(120)
    assert not said(Study(X, background=Y, labels=noise))["components"][0]["label"]["is_clear"]


def test_who_carries_a_component(groups):
    X, Y, _ = groups
    X = X.copy()
    X[40:50, 3] += 12
    donors = np.arange(120) // 10
    found = said(Study(X, background=Y, blocks=([f"mouse {k}" for k in donors], np.arange(100) // 10)))
    first = found["components"][0]
    Z = found.subject.latents[:, 0] - found.subject.latents[:, 0].mean()
    assert first["carrier"]["name"] == "mouse 4"
    assert first["carrier"]["share"] == pytest.approx(np.sum(Z[40:50] ** 2) / np.sum(Z**2), rel=1e-6)
    alone = said(Study(X, background=Y, names=([f"s{i}" for i in range(120)], None)))
    largest = int(np.argmax((alone.subject.latents[:, 0] - alone.subject.latents[:, 0].mean()) ** 2))
    assert alone["components"][0]["carrier"]["name"] == f"s{largest}"


@pytest.mark.parametrize(
    ("low", "again", "share", "rejected", "expected"),
    [
        (1.5, True, 0.2, True, "holds up"),
        (1.5, True, 0.2, None, "holds up"),
        (1.5, True, 0.2, False, "uncertain"),
        (1.5, True, 0.7, True, "uncertain"),
        (1.5, False, 0.2, True, "uncertain"),
        (0.9, True, 0.2, True, "uncertain"),
        (0.9, False, 0.2, True, "not confirmed"),
        (None, None, 0.2, True, "not known"),
    ],
)
def test_support(low, again, share, rejected, expected):
    entry = {"held_out_interval": [low, 9.0], "found_again": again, "carrier": {"name": "a", "share": share}}
    assert support_of(entry, rejected) == expected
    assert expected in SUPPORT
    doubted = {"holds up": "uncertain"}.get(expected, expected)
    assert support_of(entry, rejected, ignores_replicates=True) == doubted


def test_nothing_holds_up_that_ignores_replicates():
    """Rows of one donor are alike, so that halves that share donors are no unseen rows; whole donors are."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((60, 6)) * [4, 1, 1, 1, 1, 1], rng.standard_normal((60, 6))
    names = tuple([f"{who}{i // 3}_{i % 3 + 1}" for i in range(60)] for who in "ab")
    donors = tuple([name.split("_")[0] for name in own] for own in names)
    for given, expected in (({}, "holds up"), ({"names": names}, "uncertain"), ({"blocks": donors}, "holds up")):
        found = said(Study(X, background=Y, **given))
        assert found["components"][0]["support"] == expected
        assert ("replicates" in found["caution_topics"]) == ("names" in given)


@pytest.mark.slow
def test_noise_does_not_hold_up():
    """Of 40 tables without any contrast, at most 5 % of the components may seem to hold up; the control does."""
    rng = np.random.default_rng(0)
    seen = []
    for _ in range(40):
        X, Y = rng.standard_normal((40, 6)), rng.standard_normal((40, 6))
        seen += [entry["support"] for entry in said(Study(X, background=Y), test=None)["components"]]
    assert seen.count("holds up") <= 9  # binomial(80, .05) exceeds this in 1 of 100
    X[:, 0] *= 4
    assert said(Study(X, background=Y), test=None)["components"][0]["support"] == "holds up"
