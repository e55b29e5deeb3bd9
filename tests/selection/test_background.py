"""check_background and subgroup_ratios: golden BasCoD, what each problem looks like, the level, controls."""

import numpy as np
import pytest
import scipy.sparse as sp

from contrapca import CPCA, PPCA, ContraPCA, RatioPCA, check_background, subgroup_ratios
from contrapca.exceptions import GroupError
from contrapca.selection import bascod_statistic
from contrapca.selection._background import LEVEL


def tables(n, m, D, *, shared=5.0, cases=0.0, controls=0.0, seed=0, noise=1.0):
    """Both groups share two directions; the cases, or the controls, may have one more of their own."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((D, 4)))[0]
    X, Y = rng.standard_normal((n, D)), noise * rng.standard_normal((m, D))
    X += (rng.standard_normal((n, 4)) * [shared, shared - 1, cases, 0]) @ Q.T
    Y += (rng.standard_normal((m, 4)) * [shared, shared - 1, 0, controls]) @ Q.T
    return X, Y


def check(X, Y, **options):
    return check_background(X, background=Y, n_permutations=options.pop("n", 99), progress=False, **options)


def test_golden_statistic(mouse):
    """Ten and seven loadings of the mouse proteins, from an independent run."""
    X, Y, _, _ = mouse
    V, U = (np.linalg.eigh(np.cov(T.T))[1][:, : -d - 1 : -1] for T, d in ((X, 10), (Y, 7)))
    statistic, p, r = bascod_statistic(V, U)
    np.testing.assert_allclose(r, [0.8771, 0.8709, 0.6752, 0.5524, 0.6810, 0.5823, 0.7544], atol=5e-5)
    assert statistic == pytest.approx(18.8991, abs=5e-5)
    assert p == pytest.approx(0.1688, abs=5e-5)


def test_a_good_background():
    found = check(*tables(150, 120, 20, cases=3.0))
    assert found.admissible
    assert found.p_background > 0.05
    assert found.p_foreground <= LEVEL  # there is something to find
    assert found.only_background < 0.1 < found.only_foreground
    assert found.dimensions == {"foreground": 3, "background": 2}
    assert "fit to be one" in str(found)
    assert found.table().n_rows == 2


def test_a_background_with_directions_of_its_own():
    found = check(*tables(150, 120, 20, cases=3.0, controls=3.0))
    assert not found.admissible
    assert found.p_background <= LEVEL
    assert "varies in directions in which the foreground does not" in found.problems[0]


def test_swapped_groups():
    Y, X = tables(150, 120, 20, cases=3.0)
    found = check(X, Y)
    assert found.problems[0].startswith("The groups may be swapped")


def test_the_same_table_twice():
    X, _ = tables(60, 60, 10)
    found = check(X, X.copy())
    assert found.problems[0].startswith("Foreground and background are the same table")
    assert found.only_background == pytest.approx(0, abs=1e-9)
    assert not check(sp.csr_array(X), sp.csr_array(X)).admissible


def test_too_few_rows():
    X, Y = tables(80, 6, 10)
    assert any("background has only 6 independent rows" in problem for problem in check(X, Y).problems)
    X, Y = tables(80, 60, 10)
    blocks = {"blocks": np.arange(80) % 8, "background_blocks": 8 + np.arange(60) % 12}
    assert any("foreground has only 8 independent" in problem for problem in check(X, Y, **blocks).problems)


def test_batches():
    X, Y = tables(150, 120, 20, noise=2.0)
    found = check(X, Y)
    assert found.noise_ratio == pytest.approx(0.25, rel=0.2)
    assert any("not measured or prepared alike" in problem for problem in found.problems)
    X, Y = tables(150, 120, 20)
    moved = check(X + 10, Y)
    assert moved.far_features == 1
    assert any("means of 100% of the features" in problem for problem in moved.problems)


@pytest.mark.slow
def test_its_level():
    """Equal distributions are rarely called different: at the level, up to three standard errors, also in wide tables;
    and nearly always where the background has a direction of its own, the control."""
    for n, m, D in ((60, 50, 10), (40, 40, 80)):
        p = np.array([check(*tables(n, m, D, seed=seed)).p_background for seed in range(60)])
        assert np.mean(p <= LEVEL) <= LEVEL + 3 * np.sqrt(LEVEL * (1 - LEVEL) / 60)
    found = [check(*tables(150, 120, 20, controls=4.0, seed=seed)).p_background for seed in range(10)]
    assert np.mean(np.array(found) <= LEVEL) >= 0.9


def test_blocks_are_permuted_as_a_whole():
    """Twelve animals of ten rows: their own effects are differences between groups of rows, not of animals."""
    rng = np.random.default_rng(1)

    def herd():
        return np.repeat(2 * rng.standard_normal((12, 15)), 10, axis=0) + rng.standard_normal((120, 15))

    X, Y, animals = herd(), herd(), np.repeat(np.arange(12), 10)
    by_rows = check(X, Y)
    by_animals = check(X, Y, blocks=animals, background_blocks=12 + animals)
    assert by_rows.p_background <= LEVEL < by_animals.p_background


def test_bad_input():
    X, Y = tables(30, 25, 6)
    for options, error, says in (
        ({"n_permutations": 98}, ValueError, "n_permutations=98"),
        ({"scale": "both"}, ValueError, "scale='both'"),
        ({"background": {"a": Y, "b": Y}}, GroupError, "two groups"),
        ({"background": np.where(Y > 2, np.nan, Y)}, ValueError, "complete rows"),
        ({"background": Y[:, :5]}, GroupError, "6 features"),
    ):
        with pytest.raises(error, match=says):
            check_background(X, **{"background": Y} | options)


# ---------------------------------------------------------------------- subgroups


def test_subgroup_ratios():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((300, 6)) + 5, rng.standard_normal((200, 6))
    X[:100, 2] *= 4  # varies within one subgroup
    X[100:200, 4] += 6  # tells another one apart
    labels = np.repeat(["a", "b", "c"], 100)
    for model in (RatioPCA(2, ridge=0), CPCA(2, gamma=1.0), ContraPCA(2), CPCA(2, gamma=1.0, scale="pooled")):
        model.fit(X, background=Y)
        table = subgroup_ratios(model, X, labels)
        assert table["subgroup"].tolist() == ["a", "b", "c"]
        assert table["rows"].tolist() == [100, 100, 100]
        V = model.components_.T / model.scale_[:, None]
        for k in range(2):
            Z, reference = (X - X.mean(axis=0)) @ V[:, k], np.var(Y @ (model.components_[k] / model.background_scale_))
            expected = [Z[labels == name].var() / reference for name in "abc"]
            np.testing.assert_allclose(table[f"ratio_{k + 1}"], expected, rtol=1e-8)
            shifts = [Z[labels == name].mean() / np.sqrt(reference) for name in "abc"]
            np.testing.assert_allclose(table[f"shift_{k + 1}"], shifts, atol=1e-8)
    np.testing.assert_allclose(subgroup_ratios(model, sp.csr_array(X), labels)["ratio_1"], table["ratio_1"], rtol=1e-8)


def test_bad_input_of_subgroups():
    X, Y = tables(30, 25, 6)
    model = CPCA(1, gamma=0.5).fit(X, background=Y)
    with pytest.raises(GroupError, match="labels has 3 entries for 30"):
        subgroup_ratios(model, X, ["a", "b", "c"])
    with pytest.raises(GroupError, match="without a background"):
        subgroup_ratios(PPCA(1).fit(X), X, np.zeros(30))
    with pytest.raises(TypeError, match="not a str"):
        subgroup_ratios("model", X, np.zeros(30))
