"""Choosing gamma, the number of components, and removing the background's directions."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import silhouette_score

from conftest import make_groups
from contrapca import CPCA, PCPCA, GammaSearch, choose_components, contrast_path, remove_background
from contrapca.datasets import make_hidden_clusters
from contrapca.exceptions import GroupError

DATA = make_hidden_clusters(200, 200, 15, random_state=0)
X, Y, LABELS = DATA.foreground, DATA.background, DATA.labels


@pytest.mark.parametrize("criterion", ["limit", "silhouette", "stability", "heldout"])
def test_criteria(criterion):
    search = GammaSearch(criterion, random_state=0, n_splits=3).fit(X, background=Y, labels=LABELS)
    assert search.scores_.shape == search.path_.gammas.shape
    assert search.best_gamma_ == search.path_.gammas[np.argmax(search.scores_)]
    assert search.best_estimator_.gamma_ == search.best_gamma_
    np.testing.assert_array_equal(search.transform(X), search.best_estimator_.transform(X))
    assert len(search.curve()) == search.scores_.size
    again = GammaSearch(criterion, random_state=0, n_splits=3).fit(X, background=Y, labels=LABELS)
    np.testing.assert_array_equal(again.scores_, search.scores_)
    clone(search)


def test_limit_is_auto():
    search = GammaSearch("limit").fit(X, background=Y)
    assert search.best_gamma_ == pytest.approx(PCPCA(2).fit(X, background=Y).gamma_)
    directions = GammaSearch("limit", method="cpca").fit(X, background=Y)
    assert isinstance(directions.best_estimator_, CPCA)
    assert directions.best_gamma_ == pytest.approx(CPCA(2).fit(X, background=Y).gamma_)


def test_silhouette_is_the_best_on_the_grid():
    search = GammaSearch("silhouette").fit(X, background=Y, labels=LABELS)

    def score(gamma):
        Z = PCPCA(2, gamma=gamma).fit(X, background=Y).transform(X)
        return silhouette_score(Z / Z.std(axis=0), LABELS)

    assert search.best_score_ == pytest.approx(score(search.best_gamma_), abs=1e-6)
    grid = np.linspace(0, 0.999 * search.path_.limit, 60)
    assert search.best_score_ > max(map(score, grid)) - 0.02


def test_clusters_are_searched():
    search = GammaSearch("silhouette", random_state=0).fit(X, background=Y)
    assert search.best_n_clusters_ == 4
    assert search.best_gamma_ > 0.3
    given = GammaSearch("silhouette", n_clusters=3, random_state=0).fit(X, background=Y)
    assert given.best_n_clusters_ == 3


def test_heldout_prefers_a_weak_contrast_and_stability_is_an_agreement():
    heldout = GammaSearch("heldout", random_state=0).fit(X, background=Y)
    assert heldout.best_gamma_ < 0.5 * heldout.path_.limit
    stability = GammaSearch("stability", random_state=0).fit(X, background=Y)
    finite = stability.scores_[np.isfinite(stability.scores_)]
    assert np.all((finite >= 0) & (finite <= 1 + 1e-12))
    few = GammaSearch("heldout", random_state=0, n_splits=2).fit(X[:40], background=Y[:40])
    assert few.scores_[-1] == -np.inf  # an infeasible fold
    assert np.isfinite(few.best_score_)


def test_stacked_rows():
    rows, group = np.vstack([X, Y]), np.repeat(["case", "control"], 200)
    stacked = GammaSearch("silhouette", background_label="control").fit(rows, group, labels=LABELS)
    plain = GammaSearch("silhouette").fit(X, background=Y, labels=LABELS)
    assert stacked.best_gamma_ == plain.best_gamma_


def test_search_with_missing_values():
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    search = GammaSearch("silhouette").fit(holes, background=Y, labels=LABELS)
    assert search.best_score_ > 0.3
    assert GammaSearch("limit").fit(holes, background=Y).best_gamma_ > 0
    with pytest.raises(ValueError, match="'stability' needs complete rows"):
        GammaSearch("stability").fit(holes, background=Y)


def test_search_refuses():
    with pytest.raises(ValueError, match="criterion='best'"):
        GammaSearch("best").fit(X, background=Y)
    with pytest.raises(ValueError, match="needs a likelihood"):
        GammaSearch("heldout", method="cpca").fit(X, background=Y)
    with pytest.raises(GroupError, match="5 entries for 200"):
        GammaSearch("silhouette").fit(X, background=Y, labels=LABELS[:5])
    with pytest.raises(GroupError, match="two classes"):
        GammaSearch("silhouette").fit(X, background=Y, labels=np.zeros(200))
    with pytest.raises(GroupError, match="background"):
        GammaSearch().fit(X)
    limit = contrast_path(X, background=Y, gammas=[0.0]).limit
    with pytest.raises(ValueError, match="every split is infeasible"):
        GammaSearch("stability", gammas=[0.9999 * limit], random_state=0).fit(X, background=Y)
    with pytest.raises(ValueError, match="too few for 150 parts"):
        GammaSearch("heldout", n_splits=150).fit(X, background=Y)
    with pytest.raises(ValueError, match="n_clusters=1"):
        GammaSearch("silhouette", n_clusters=1).fit(X, background=Y)
    with pytest.raises(GroupError, match="fewer classes than rows"):
        GammaSearch("silhouette").fit(X, background=Y, labels=np.arange(200))


def test_mouse_silhouette(mouse):
    """Within 0.02 of the best on a 200-point grid."""
    left, right, genotype, _ = mouse
    search = GammaSearch("silhouette").fit(left, background=right, labels=genotype)
    path = contrast_path(left, background=right, gammas=np.linspace(0, 0.9999 * search.path_.limit, 200))
    latents = path.latents(left)
    best = max(silhouette_score(Z / Z.std(axis=0), genotype) for Z in latents)
    assert search.best_score_ > best - 0.02


# ---------------------------------------------------------------------- how many components


def planted(k, seed, n=120, m=100, D=10, signal=2.0):
    """k foreground-only directions of variance 4, and a shared one of variance 9."""
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.standard_normal((D, 4)))[0]
    left, right = rng.standard_normal((n, D)), rng.standard_normal((m, D))
    left += 3 * np.outer(rng.standard_normal(n), U[:, 3])
    right += 3 * np.outer(rng.standard_normal(m), U[:, 3])
    return left + signal * rng.standard_normal((n, k)) @ U[:, :k].T, right, U[:, :k]


def count(k, seed, **options):
    left, right, _ = planted(k, seed)
    return choose_components(left, background=right, n_permutations=59, random_state=seed, progress=False, **options)


def test_no_dimension_where_there_is_none():
    """At most 21 false positives in 200: the 99.9 % quantile of a binomial with 5 %."""
    assert sum(count(0, seed).n_components > 0 for seed in range(200)) <= 21


@pytest.mark.parametrize(("n", "m", "D"), [(100, 6, 8), (20, 12, 50)])
def test_few_rows_and_wide_tables_keep_the_level(n, m, D):
    """At most 14 of 100, the 99.9 % quantile; rows about their means instead of contrasts gave 13-15 %."""
    found = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        left, right = rng.standard_normal((n, D)), rng.standard_normal((m, D))
        options = {"n_permutations": 39, "max_components": 1, "random_state": seed, "progress": False}
        found += choose_components(left, background=right, **options).n_components
    assert found <= 13


@pytest.mark.parametrize("k", [1, 2, 3])
def test_planted_dimensions_are_counted(k):
    found = [count(k, seed).n_components for seed in range(30)]
    assert np.mean(np.array(found) >= k) > 0.9
    assert np.median(found) == k


def test_what_the_test_reports():
    left, right, U = planted(2, 0)
    found = choose_components(left, background=right, random_state=0, progress=False)
    assert found.n_components == 2
    assert found.p_values.shape == (3,)
    assert np.all(found.p_values[:2] <= 0.05)
    assert found.p_values[2] > 0.05
    cosines = np.linalg.svd(U.T @ np.linalg.qr(found.directions.T)[0], compute_uv=False)
    assert cosines.min() > 0.85
    assert "2 contrastive dimension(s)" in str(found)
    assert found.table()["kept"].tolist() == [True, True, False]
    assert "no contrastive dimension" in str(count(0, 1))
    same = choose_components(left, background=right, random_state=0, progress=False)
    np.testing.assert_array_equal(same.p_values, found.p_values)
    assert choose_components(left, background=right, max_components=1, random_state=0, progress=False).n_components == 1
    assert choose_components(right, background=left, random_state=0, progress=False).n_components == 0


def test_wide_and_scaled_tables():
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((40, 100)), rng.standard_normal((35, 100))
    left[:, :5] += 4 * rng.standard_normal((40, 1))
    found = choose_components(left, background=right, n_permutations=59, random_state=0, progress=False)
    assert found.n_components == 1
    assert np.argsort(-np.abs(found.directions[0]))[:5].max() < 5
    units = np.linspace(1, 100, 100)
    for scale in ("group", "pooled"):
        options = {"scale": scale, "n_permutations": 59, "random_state": 0, "progress": False}
        assert choose_components(left * units, background=right * units, **options).directions.shape[1] == 100


def test_components_refused(capsys):
    with pytest.raises(ValueError, match=r"level=0\.001"):
        choose_components(X, background=Y, level=0.001)
    with pytest.raises(ValueError, match="n_permutations=0"):
        choose_components(X, background=Y, n_permutations=0)
    with pytest.raises(ValueError, match="NaN"):
        choose_components(np.where(X > 2, np.nan, X), background=Y)
    choose_components(X, background=Y, n_permutations=19, max_components=1, random_state=0)
    assert "permutations" in capsys.readouterr().err


# ---------------------------------------------------------------------- removing the background


def test_removed_directions_and_surviving_structure():
    """No variance is left along the background's directions; the planted clusters survive, and become visible."""
    corrected = remove_background(X, background=Y, n_directions=3)
    assert corrected.shape == X.shape
    np.testing.assert_allclose(corrected.mean(axis=0), X.mean(axis=0), atol=1e-10)
    B = np.linalg.svd(Y - Y.mean(axis=0), full_matrices=False)[2][:3]
    np.testing.assert_allclose((corrected - corrected.mean(axis=0)) @ B.T, 0, atol=1e-9)
    left = np.linalg.norm((corrected - corrected.mean(axis=0)) @ DATA.plane)
    assert left > 0.9 * np.linalg.norm((X - X.mean(axis=0)) @ DATA.plane)

    def leading(table):
        Z = np.linalg.svd(table - table.mean(axis=0), full_matrices=False)[0][:, :2]
        return silhouette_score(Z, LABELS)

    assert leading(corrected) > 0.4
    assert leading(X) < 0.2


def test_directions_that_the_background_has_not():
    with pytest.raises(ValueError, match=r"n_directions=3 .* varies in 2 directions"):
        remove_background(X, background=Y[:3], n_directions=3)


def test_search_in_a_pipeline(need):
    pd = need("pandas")
    names = [f"g{j}" for j in range(15)]
    rows, group = pd.DataFrame(np.vstack([X, Y]), columns=names), np.repeat(["case", "control"], 200)
    search = GammaSearch(background_label="control").fit(rows, group)
    assert list(search.feature_names_in_) == names
    assert list(search.best_estimator_.feature_names_in_) == names
    assert list(search.get_feature_names_out()) == ["pcpca0", "pcpca1"]
    assert search.set_output(transform="pandas").transform(rows).shape == (400, 2)
    strings = GammaSearch("silhouette").fit(X, background=Y, labels=pd.Series(LABELS.astype(str)))
    assert strings.best_score_ == GammaSearch("silhouette").fit(X, background=Y, labels=LABELS).best_score_


def test_remove_background_keeps_frames(need):
    pd = need("pandas")
    names = [f"g{j}" for j in range(15)]
    table = pd.DataFrame(X, columns=names, index=[f"r{i}" for i in range(200)])
    found = remove_background(table, background=pd.DataFrame(Y, columns=names))
    assert list(found.columns) == names
    assert list(found.index) == list(table.index)
    with pytest.raises(ValueError, match="n_directions=15"):
        remove_background(X, background=Y, n_directions=15)


def test_groups_fixture_has_three_dimensions():
    left, right = make_groups(300, 250, 10, signal=4.0)
    assert choose_components(left, background=right, random_state=0, progress=False).n_components == 2
