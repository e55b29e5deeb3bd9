"""Variances of conditions, cells and doses on unseen rows, and what designs find."""

import numpy as np
import pytest

from contrapca import (
    PCPCA,
    ContraPCA,
    RatioPCA,
    Study,
    condition_similarity,
    held_out_contrast,
    plots,
)
from contrapca.exceptions import GroupError

pd = pytest.importorskip("pandas")

NAMES = [f"f{j}" for j in range(12)]


def rows_of(rng, n, variance, features=12):
    """Noise, and a first feature of some variance."""
    found = rng.normal(size=(n, features))
    found[:, 0] *= np.sqrt(variance)
    return found


def as_frame(tables, **columns):
    return pd.DataFrame(np.vstack(tables), columns=NAMES).assign(**columns)


def by_name(table, column):
    return dict(zip(table[column].tolist(), zip(table["ratio"], table["from"], table["to"], strict=True), strict=True))


# ---------------------------------------------------------------------- several conditions


def test_each_condition_has_its_own_ratio():
    rng = np.random.default_rng(0)
    wanted = {"A": 16.0, "B": 4.0, "C": 1.0}
    means = dict(zip("ABC", rng.normal(scale=10, size=(3, 12)), strict=True))  # means never count
    tables = {name: rows_of(rng, 150, variance) + means[name] for name, variance in wanted.items()}
    study = Study(groups=tables, background=rows_of(rng, 150, 1.0))
    found = held_out_contrast(PCPCA(1), study)
    ratios = by_name(found.variance_table(), "condition")
    assert list(ratios) == list(wanted)
    for name, (ratio, low, high) in ratios.items():
        assert low < wanted[name] < high
        assert ratio == pytest.approx(wanted[name], rel=0.5)
    assert ratios["A"][1] > ratios["B"][2] > 1 > ratios["C"][1]
    assert "relative to background" in str(found)


def test_one_condition_and_two_doses_are_two_groups():
    rng = np.random.default_rng(1)
    cases, controls = rows_of(rng, 60, 4.0), rows_of(rng, 50, 1.0)
    plain = held_out_contrast(ContraPCA(2), cases, background=controls)
    one = held_out_contrast(ContraPCA(2), Study(groups={"A": cases}, background=controls))
    doses = as_frame([cases, controls], z=np.repeat([1.0, 0.0], [60, 50]))
    two = held_out_contrast(ContraPCA(2), Study.from_frame(doses, dose="z"))
    for other in (one, two):
        np.testing.assert_allclose(other.log_ratios, plain.log_ratios, atol=1e-12)
        np.testing.assert_allclose(other.intervals, plain.intervals, atol=1e-12)
    np.testing.assert_allclose(one.variance_table()["ratio"], plain.ratios, rtol=1e-12)
    with pytest.raises(GroupError, match="variance_table is for studies of several conditions"):
        plain.variance_table()


@pytest.mark.slow
def test_small_conditions_have_ratios_that_are_not_too_large():
    """Deviations are from the mean of the condition's own few seen rows, and that is taken into account."""
    rng = np.random.default_rng(2)
    logs, naive = [], []
    for _ in range(60):
        tables = {name: rng.normal(size=(8, 12)) for name in "ABCDEF"}
        found = held_out_contrast(PCPCA(1, gamma=0.5), Study(groups=tables, background=rng.normal(size=(80, 12))))
        logs.append(found.log_ratios[0])
        naive.append(found.log_ratios[0] + np.log(1 + 1 / 4) - np.log(1 + 1 / 24))  # as if rows had one mean
    error = np.std(logs, ddof=1) / np.sqrt(60)
    assert abs(np.mean(logs)) < 3 * error + 0.03
    assert np.mean(naive) > 3 * error + 0.03  # the control: seen


@pytest.mark.slow
def test_three_conditions_find_what_they_share():
    """Planted variance 3 in all conditions, beside two shared directions of variance 9 (n = 60 each, D = 50)."""
    rng = np.random.default_rng(3)
    together, alone = [], []
    for _ in range(40):
        Q = np.linalg.qr(rng.normal(size=(50, 3)))[0]

        def table(planted, Q=Q):
            common = 3 * rng.normal(size=(60, 2)) @ Q[:, :2].T
            return rng.normal(size=(60, 50)) + common + np.sqrt(planted) * rng.normal(size=(60, 1)) @ Q[:, 2:].T

        groups, controls = {name: table(3.0) for name in "ABC"}, table(0.0)
        for found, model in (
            (together, ContraPCA(1).fit(Study(groups=groups, background=controls))),
            (alone, ContraPCA(1).fit(groups["A"], background=controls)),
        ):
            found.append(float((np.ravel(model.components_) @ Q[:, 2]) ** 2))
    print(f"recovery of three conditions {np.mean(together):.3f}, of one {np.mean(alone):.3f}")
    assert np.mean(together) >= 0.85 > np.mean(alone) + 0.1


# ---------------------------------------------------------------------- interaction


def cells_of(rng, sizes, variances, features=12):
    return np.vstack([rows_of(rng, n, v, features) for n, v in zip(sizes, variances, strict=True)])


def two_by_two(rows, sizes, names=NAMES):
    levels = {"g": ["mut", "mut", "wt", "wt"], "t": ["drug", "none", "drug", "none"]}
    columns = {name: np.repeat(own, sizes) for name, own in levels.items()}
    frame = pd.DataFrame(rows, columns=names).assign(**columns)
    return Study.from_frame(frame, interaction=("g", "t"), case=("mut", "drug"))


def test_the_double_ratio_is_one_where_factors_act_independently():
    sizes = (150, 200, 200, 150)
    for seed, variances, double in ((0, (16.0, 1.0, 1.0, 1.0), 16.0), (1, (6.0, 3.0, 2.0, 1.0), 1.0)):
        rng = np.random.default_rng(seed)
        study = two_by_two(cells_of(rng, sizes, variances), sizes)
        found = held_out_contrast(RatioPCA(1), study).variance_table()
        ratios = by_name(found, "cell")
        assert list(ratios) == ["mut, drug", "mut, none", "wt, drug", "interaction"]
        ratio, low, high = ratios["interaction"]
        cells = [ratios[name][0] for name in list(ratios)[:3]]
        assert ratio == pytest.approx(cells[0] / cells[1] / cells[2], rel=1e-9)
        if double > 1:
            assert 1 < low < double < high
        else:
            assert low < 1 < high


@pytest.mark.slow
def test_interaction_axes_reach_more_than_two_groups_do():
    """The log interaction that axes reach, as a part of that of the true direction: main effects hide it."""
    settings = [(20, (60,) * 4, 6, 3), (20, (60,) * 4, 6, 6), (20, (15, 100, 100, 15), 6, 6), (50, (100,) * 4, 6, 6)]
    reached, two_groups = [], []
    for D, sizes, main, planted in settings:
        rng = np.random.default_rng(4)
        for _ in range(20):
            Q = np.linalg.qr(rng.normal(size=(D, 5)))[0]
            g, t, v = Q[:, 2], Q[:, 3], Q[:, 4]
            base = np.eye(D) + 9 * Q[:, :2] @ Q[:, :2].T
            covs = [
                base
                + main * ((c in (0, 1)) * np.outer(g, g) + (c in (0, 2)) * np.outer(t, t))
                + planted * (c == 0) * np.outer(v, v)
                for c in range(4)
            ]
            parts = [rng.normal(size=(n, D)) @ np.linalg.cholesky(S).T for n, S in zip(sizes, covs, strict=True)]

            def log_interaction(axis, covs=covs):
                one, first, second, neither = (axis @ S @ axis for S in covs)
                return np.log(one * neither / first / second)

            study = two_by_two(np.vstack(parts), sizes, [f"f{j}" for j in range(D)])
            for found, model in (
                (reached, ContraPCA(1).fit(study)),
                (two_groups, ContraPCA(1).fit(parts[0], background=parts[1])),
            ):
                found.append(max(log_interaction(np.ravel(model.components_)), 0) / log_interaction(v))
    print(f"reached by the interaction {np.mean(reached):.3f}, by 11 against 10 {np.mean(two_groups):.3f}")
    assert np.mean(reached) >= 0.53 > np.mean(two_groups) + 0.1


# ---------------------------------------------------------------------- dose


def test_growth_over_the_range_of_doses():
    rng = np.random.default_rng(6)
    z = np.repeat([0.0, 1.0, 3.0, 10.0], 100)
    rank = np.repeat([0, 1, 2, 3], 100) / 3
    rows = rng.normal(size=(400, 12)) + np.outer(z, np.ones(12))
    rows[:, 0] *= np.exp(rank * np.log(9) / 2)
    frame = pd.DataFrame(rows, columns=NAMES).assign(z=z)
    ratios = by_name(held_out_contrast(PCPCA(1), Study.from_frame(frame, dose="z")).variance_table(), "dose")
    assert list(ratios) == ["1", "3", "10", "growth"]
    assert ratios["growth"][1] < 9 < ratios["growth"][2]
    assert ratios["growth"][1] > 2
    strata = Study.from_frame(frame.assign(s=np.tile(["a", "b"], 200)), dose="z", strata="s")
    ratios = by_name(held_out_contrast(PCPCA(1), strata).variance_table(), "dose")
    assert list(ratios) == ["middle", "high", "growth"]
    assert ratios["growth"][1] < 9 < ratios["growth"][2]


def test_every_row_may_have_a_dose_of_its_own():
    rng = np.random.default_rng(7)
    z = rng.uniform(size=300)
    rows = rng.normal(size=(300, 12))
    rows[:, 0] *= np.exp(z * np.log(9) / 2)
    study = Study.from_frame(pd.DataFrame(rows, columns=NAMES).assign(z=z), dose="z")
    ratios = by_name(held_out_contrast(PCPCA(1), study).variance_table(), "dose")
    assert list(ratios) == ["middle", "high", "growth"]
    assert ratios["growth"][1] > 1.5


def test_a_cell_of_one_block_cannot_be_held_out():
    rng = np.random.default_rng(9)
    columns = {"z": np.tile([0.0, 1.0], 60), "donor": np.repeat(np.arange(6), 20)}
    frame = as_frame([rng.normal(size=(120, 12))], **columns)
    study = Study.from_frame(frame, dose="z", strata="donor", blocks="donor")
    with pytest.raises(GroupError, match="All rows of a condition, a cell or a dose are in one block"):
        held_out_contrast(PCPCA(1), study)
    alone = Study.from_frame(frame, dose="z", strata="donor")
    assert held_out_contrast(PCPCA(1), alone).variance_table()["ratio"].min() > 0.3


# ---------------------------------------------------------------------- similarity


def test_similarity_of_conditions_as_a_table_and_a_figure():
    import matplotlib as mpl

    mpl.use("agg")
    rng = np.random.default_rng(8)
    tables = {"A": rows_of(rng, 100, 16.0), "B": rows_of(rng, 100, 16.0), "C": rows_of(rng, 100, 16.0)[:, ::-1]}
    study = Study(groups=tables, background=rng.normal(size=(100, 12)))
    found = condition_similarity(PCPCA(1), study)
    assert found.similarity[0, 1] > 0.9 > 0.3 > found.similarity[0, 2]
    np.testing.assert_allclose(np.diagonal(found.similarity), 1)
    np.testing.assert_allclose(np.cos(np.radians(found.angles)) ** 2, found.similarity, atol=1e-12)
    alone = [np.ravel(PCPCA(1).fit(tables[name], background=study.rows["background"]).components_) for name in "AC"]
    assert found.similarity[0, 2] == pytest.approx(float(alone[0] @ alone[1]) ** 2, abs=1e-9)
    assert list(found.table()) == ["condition", "A", "B", "C"]
    ax = plots.heatmap(found)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["A", "B", "C"]
    assert f"{found.similarity[0, 1]:.2f}" in [text.get_text() for text in ax.texts]
    with pytest.raises(GroupError, match="needs a study of several conditions"):
        condition_similarity(PCPCA(1), Study(tables["A"], background=tables["B"]))
