"""check_background: what each problem looks like, the level, controls."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats

from contrapca import Study, check_background, contrast_test
from contrapca.exceptions import GroupError
from contrapca.inference._background import LEVEL


def tables(n, m, D, *, shared=5.0, cases=0.0, controls=0.0, seed=0, noise=1.0):
    """Both groups share two directions; the cases, or the controls, may have one more of their own."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((D, 4)))[0]
    X, Y = rng.standard_normal((n, D)), noise * rng.standard_normal((m, D))
    X += (rng.standard_normal((n, 4)) * [shared, shared - 1, cases, 0]) @ Q.T
    Y += (rng.standard_normal((m, 4)) * [shared, shared - 1, 0, controls]) @ Q.T
    return X, Y


def check(X, Y, blocks=None, **options):
    return check_background(Study(X, background=Y, blocks=blocks), progress=False, **options)


def test_a_good_background():
    found = check(*tables(150, 120, 20, cases=3.0))
    assert found.admissible
    assert found.p_background > 0.05
    assert found.p_foreground <= LEVEL  # there is something to find
    assert found.only_background < 0.1 < found.only_foreground
    assert found.dimensions == {"foreground": 3, "background": 2}
    assert "looks suitable" in str(found)
    assert found.table().n_rows == 2


def test_a_background_with_directions_of_its_own():
    found = check(*tables(150, 120, 20, cases=3.0, controls=3.0))
    assert not found.admissible
    assert found.p_background <= LEVEL
    assert "times as much as the foreground along some direction" in found.problems[0]
    assert found.ratio_background == pytest.approx(
        9, rel=0.3
    )  # a little less than in the population: half of the rows find it


def test_swapped_groups():
    Y, X = tables(150, 120, 20, cases=3.0)
    found = check(X, Y)
    assert found.problems[0].startswith("The groups may be swapped")


def test_p_values_are_those_of_the_test_both_ways():
    X, Y = tables(60, 50, 10, cases=1.0, controls=0.5)
    random = np.random.default_rng(3)
    one, other = (
        contrast_test(left, background=right, max_components=1, random_state=random, progress=False)
        for left, right in ((X, Y), (Y, X))
    )
    found = check(X, Y, random_state=3)
    assert (found.p_foreground, found.p_background) == (one.p_values[0], other.p_values[0])
    assert (found.ratio_foreground, found.ratio_background) == (one.ratios[0], other.ratios[0])


@pytest.mark.parametrize("D", [12, 90])
def test_the_part_outside_the_other(D):
    """From the eigenvectors of each covariance, tall and wide."""
    X, Y = tables(60, 50, D, cases=4.0, controls=3.0)
    found = check(X, Y, n_splits=1)
    (l_x, U), (l_y, V) = (np.linalg.eigh(np.cov(T.T)) for T in (X, Y))
    d, e = found.dimensions["foreground"], found.dimensions["background"]
    (l_x, U), (l_y, V) = (l_x[-d:], U[:, -d:]), (l_y[-e:], V[:, -e:])
    outside = [sum(l_y[k] * (1 - np.sum((U.T @ V[:, k]) ** 2)) for k in range(e)) / l_y.sum()]
    outside += [sum(l_x[k] * (1 - np.sum((V.T @ U[:, k]) ** 2)) for k in range(d)) / l_x.sum()]
    np.testing.assert_allclose([found.only_background, found.only_foreground], outside, rtol=1e-8)


def test_stronger_shared_directions_are_no_problem():
    X, Y = tables(300, 300, 20, shared=5.0)
    rng = np.random.default_rng(1)
    Q = np.linalg.svd(Y - Y.mean(axis=0))[2][:2]
    found = check(X, Y + 4 * rng.standard_normal((300, 2)) @ Q)
    assert found.p_background < LEVEL  # it does vary more there
    assert found.admissible  # but has nothing that the foreground lacks


@pytest.mark.filterwarnings("ignore:Cases and controls are the same table")
def test_the_same_table_twice():
    X, _ = tables(60, 60, 10)
    found = check(X, X.copy())
    assert found.problems[0].startswith("Foreground and background are the same table")
    assert found.only_background == pytest.approx(0, abs=1e-9)
    assert not check(sp.csr_array(X), sp.csr_array(X)).admissible


def test_too_few_rows():
    X, Y = tables(80, 6, 10)
    assert any("background has only 6 independent rows" in problem for problem in check(X, Y).problems)
    found = check(X, Y[:3])  # too few for a test
    assert np.isnan([found.p_background, found.ratio_foreground]).all()
    assert len(found.problems) == 1 or "noise" in found.problems[1]
    X, Y = tables(80, 60, 10)
    blocks = {"blocks": (np.arange(80) % 8, 8 + np.arange(60) % 12)}
    assert any("foreground has only 8 independent" in problem for problem in check(X, Y, **blocks).problems)


def test_batches():
    X, Y = tables(150, 120, 20, noise=2.0)
    found = check(X, Y)
    assert found.noise_ratio == pytest.approx(0.25, rel=0.2)
    assert [problem for problem in found.problems if "measured or prepared alike" in problem] == list(found.problems)
    assert found.p_background < LEVEL  # noise is told from directions
    X, Y = tables(150, 120, 20)
    moved = check(X + 10, Y)
    assert moved.far_features == 1
    assert any("means of 100% of the features" in problem for problem in moved.problems)


def heavy(rng, n):
    return rng.standard_normal((n, 12)) / np.sqrt(rng.chisquare(3, (n, 1)) / 3)


def herd(rng, n_animals):
    """Ten rows of each animal, which has an effect of its own."""
    effects = np.repeat(2 * rng.standard_normal((n_animals, 15)), 10, axis=0)
    return effects + rng.standard_normal((10 * n_animals, 15))


def by_animal(n_animals):
    animals = np.repeat(np.arange(n_animals), 10)
    return {"blocks": (animals, n_animals + animals)}


EQUAL = {
    "tall": lambda rng: tables(60, 50, 10, seed=rng),
    "wide": lambda rng: tables(40, 40, 80, seed=rng),
    "few controls": lambda rng: tables(90, 20, 15, seed=rng),
    "few cases": lambda rng: tables(20, 90, 15, seed=rng),
    "heavy tails": lambda rng: (heavy(rng, 50), heavy(rng, 50)),
    "skewed": lambda rng: (rng.lognormal(size=(50, 12)), rng.lognormal(size=(40, 12))),
    "counts": lambda rng: (rng.poisson(0.3, size=(50, 12)) * 1.0, rng.poisson(0.3, size=(50, 12)) * 1.0),
    "6 animals": lambda rng: (herd(rng, 6), herd(rng, 6)),
    "12 animals": lambda rng: (herd(rng, 12), herd(rng, 12)),
}


@pytest.mark.slow
def test_its_level():
    """Equal groups are called different at the level .05, up to a binomial's tolerance for all kinds together; and
    nearly always in the controls: where the background has a direction of its own, and by rows of animals."""
    found = []
    for number, (name, draw) in enumerate(EQUAL.items()):
        blocks = by_animal(int(name.split()[0])) if "animals" in name else {}
        random = [np.random.default_rng([number, seed]) for seed in range(15)]
        found += [check(*draw(rng), random_state=rng, **blocks).p_background for rng in random]
    assert np.count_nonzero(np.array(found) <= LEVEL) <= scipy.stats.binom.isf(1e-3, len(found), LEVEL)
    own = [check(*tables(150, 120, 20, controls=4.0, seed=seed)).p_background for seed in range(10)]
    by_rows = [check(*EQUAL["12 animals"](np.random.default_rng(seed))).p_background for seed in range(10)]
    assert max(own) <= LEVEL
    assert np.mean(np.array(by_rows) <= LEVEL) >= 0.9


def test_blocks_are_split_as_a_whole():
    """Twelve animals of ten rows: their own effects are differences between groups of rows, not of animals."""
    by_rows, by_animals = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, Y = herd(rng, 12), herd(rng, 12)
        by_rows.append(check(X, Y).p_background)
        by_animals.append(check(X, Y, **by_animal(12)).p_background)
    assert max(by_rows) < 1e-3 < min(by_animals)


def test_bad_input():
    X, Y = tables(30, 25, 6)
    for options, error, says in (
        ({"n_splits": 0}, ValueError, "n_splits=0"),
        ({"scale": "both"}, ValueError, "scale='both'"),
        ({"background": {"a": Y, "b": Y}}, GroupError, "two groups"),
        ({"background": np.where(Y > 2, np.nan, Y)}, ValueError, "complete rows"),
        ({"background": Y[:, :5]}, GroupError, "6 features"),
    ):
        with pytest.raises(error, match=says):
            check_background(X, **{"background": Y} | options)


def decaying(random, n, D=60):
    """Rows whose variances fall like 1 / k^2, with no noise below: every dimension stands out from the rest."""
    return random.standard_normal((n, D)) / np.arange(1, D + 1)


def test_noise_is_not_judged_where_there_is_none_to_be_seen():
    """The last dimensions differ in 15 times the variance; the count of those above the noise has run into its end."""
    random = np.random.default_rng(0)
    X, Y = decaying(random, 300), decaying(random, 300)
    X[:, 45:] *= np.sqrt(15)
    found = check(X, Y)
    assert np.isnan(found.noise_ratio)
    assert not [problem for problem in found.problems if "noise" in problem]
    assert np.isnan(contrast_test(X, background=Y, random_state=0).noise_ratio)
    white = [table + 3 * random.standard_normal(table.shape) for table in (X, Y)]
    assert check(*white).noise_ratio == pytest.approx(1, abs=0.2)  # the control: here the rest is noise


def test_controls_like_a_part_of_the_cases():
    """A part of the cases responds, and varies elsewhere: that controls vary more in their way is no mistake."""
    random = np.random.default_rng(0)
    X, Y = random.standard_normal((200, 8)), random.standard_normal((200, 8))
    Y[:, 0] *= 5
    X[:70, 0] *= 5
    X[70:, 1] *= 5
    [problem] = check(X, Y).problems
    assert "as it should be if only part of the foreground is like the background" in problem


NULLS = {
    "white": lambda random: random.standard_normal((120, 20)),
    "decaying": lambda random: decaying(random, 120, 20),
    "heavy rows": lambda random: random.standard_normal((120, 20)) / np.sqrt(random.chisquare(3, (120, 1)) / 3),
    "skewed": lambda random: np.exp(random.standard_normal((120, 20))),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", NULLS)
def test_no_problem_is_seen_in_nulls(kind):
    """200 splits of one table, equal and unequal: no more problems than a test at level .05 allows."""
    random, said = np.random.default_rng(1), []
    for k in range(200):
        n, rows = [60, 25, 95, 80][k % 4], NULLS[kind](random)
        said += check(rows[:n], rows[n:], n_splits=3).problems
    assert len(said) <= 200 * 0.05 + 3 * np.sqrt(200 * 0.05 * 0.95)
