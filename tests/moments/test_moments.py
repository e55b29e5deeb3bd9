"""Moments as users meet them: from rows, with weights, added, saved; and that nothing is multiplied in vain."""

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from contrapca import CLVM, CPCA, PCPCA, PPCA, Moments, SparseCPCA, contrast_path, gamma_limits, load
from contrapca.data.rows import _numpy, _scipy
from contrapca.exceptions import GroupError, ModelFileError, NonFiniteError
from contrapca.moments._scatter import DenseScatter

rng = np.random.default_rng(0)
X = rng.standard_normal((90, 7)) * np.linspace(1, 3, 7) + np.linspace(-4, 40, 7)
Y = rng.standard_normal((60, 7)) * np.linspace(1, 2, 7) + np.linspace(-4, 40, 7)
COUNTS = rng.integers(0, 4, 90)
KINDS = {
    "rows in order": np.ascontiguousarray,
    "columns in order": np.asfortranarray,
    "float32": lambda table: table.astype(np.float32),
    "list": lambda table: table.tolist(),
    "sparse matrix": sp.csr_matrix,
    "sparse array": sp.csr_array,
    "sparse columns in float32": lambda table: sp.csc_array(table.astype(np.float32)),
}


def same(found, expected, rtol=1e-12):
    """Equal moments, relative to their size."""
    assert found.weight == pytest.approx(expected.weight, rel=1e-14)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=0, atol=rtol * np.abs(expected.mean).max())
    S = expected.scatter.dense()
    np.testing.assert_allclose(found.scatter.dense(), S, rtol=0, atol=rtol * np.trace(S))
    assert found.names == expected.names


def by_hand(table, weights):
    mean, scatter = oracles.weighted_moments(table, weights)
    return Moments(float(np.sum(weights)), mean, DenseScatter(scatter))


def zeroed(table):
    """The table with a third of its values 0, for sparse ones; what float32 can hold."""
    return np.where(rng.random(table.shape) < 0.3, 0, table).astype(np.float32).astype(np.float64)


# ---------------------------------------------------------------------- rows and weights


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", [None, "counts", "fractions"])
def test_every_kind_of_rows_and_weights(kind, weights):
    table = zeroed(X)
    numbers = {None: None, "counts": COUNTS, "fractions": np.random.default_rng(1).random(90) * 5}[weights]
    found = Moments.from_rows(KINDS[kind](table), sample_weight=numbers)
    same(found, by_hand(table, np.ones(90) if numbers is None else numbers), 1e-12)
    assert found.mean.dtype == found.scatter.dense().dtype == np.float64


@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_is_a_number_of_repetitions(kind):
    table = zeroed(X)
    same(Moments.from_rows(KINDS[kind](table), COUNTS), Moments.from_rows(np.repeat(table, COUNTS, axis=0)), 1e-12)


@pytest.mark.parametrize("kind", ["float32", "sparse array"])
def test_weights_far_from_zero(kind):
    """Mean 1000, sd 1: nothing may be centred after it was multiplied."""
    table = (rng.standard_normal((400, 3)) + 1000).astype(np.float32).astype(np.float64)
    weights = rng.random(400)
    same(Moments.from_rows(KINDS[kind](table), weights), by_hand(table, weights), 1e-9)


def test_weights_over_several_blocks(monkeypatch):
    """Rows are read in blocks, and in parts by threads: each takes its own weights."""
    weights = rng.random(90)
    monkeypatch.setattr(_numpy, "_block_rows", lambda D: 13)
    monkeypatch.setattr(_numpy, "CACHED_BYTES", 8 * 7 * 11)
    monkeypatch.setattr(_numpy, "worker_count", lambda n_values: 3)
    same(Moments.from_rows(X, weights), by_hand(X, weights), 1e-12)
    sparse = zeroed(X)
    monkeypatch.setattr(_scipy, "STORED_BLOCK", 17)
    same(Moments.from_rows(sp.csr_array(sparse), weights), by_hand(sparse, weights), 1e-12)


def test_weighted_rows_are_fitted_as_repeated_ones():
    cases, controls = X, Y
    again = rng.integers(1, 4, 60)
    left = PCPCA(2, gamma=0.3).fit(Moments.from_rows(cases, COUNTS), background=Moments.from_rows(controls, again))
    rows = np.repeat(cases, COUNTS, axis=0), np.repeat(controls, again, axis=0)
    right = PCPCA(2, gamma=0.3).fit(rows[0], background=rows[1])
    np.testing.assert_allclose(left.loadings_, right.loadings_, rtol=0, atol=1e-10)
    assert left.noise_variance_ == pytest.approx(right.noise_variance_, rel=1e-10)
    assert left.objective_ == pytest.approx(right.objective_, rel=1e-10)


@pytest.mark.parametrize(
    "weights",
    [
        np.ones(89),
        np.ones((90, 1)),
        3.0,
        np.where(np.arange(90) == 4, -1, 1),
        np.where(np.arange(90) == 4, np.nan, 1),
        np.where(np.arange(90) == 4, np.inf, 1),
        np.zeros(90),
        np.full(90, 1e308),
        ["a"] * 90,
    ],
    ids=["too few", "a column", "one number", "negative", "nan", "infinite", "all 0", "too large", "text"],
)
def test_bad_weights_are_refused(weights):
    with pytest.raises(ValueError, match=r"sample_weight|could not convert"):
        Moments.from_rows(X, weights)


def test_bad_rows_are_refused():
    values = {np.nan: "NaN.*column 2", np.inf: "infinity.*column 2", 1e300: "too large to be squared"}
    for value, message in values.items():
        table = X.copy()
        table[5, 2] = value
        for kind in (np.asarray, sp.csr_array):
            with pytest.raises(ValueError, match=message):
                Moments.from_rows(kind(table))
            with pytest.raises(ValueError, match=message):
                SparseCPCA(1, gamma=0.1, sparsity=3).fit(kind(table), background=kind(Y))
    with pytest.raises(ValueError, match="too many for a matrix of moments"):
        Moments.from_rows(sp.csr_array((3, 9000)))
    with pytest.raises(ValueError, match="minimum of 2"):
        Moments.from_rows(X[:1])


# ---------------------------------------------------------------------- sums


def test_two_sites_fit_what_the_pooled_rows_give():
    """Every method, its limit and its path, from moments that two sites exchange: to 1e-10."""
    cases, controls = X, Y
    split = [sum_of(Moments.from_rows(part) for part in np.split(table, [20])) for table in (cases, controls)]
    given, pooled = {"background": split[1]}, {"background": controls}
    for make in (
        PCPCA,
        lambda d: CPCA(d, gamma=0.5),
        lambda d: CLVM(1, d, tol=1e-9),
        lambda d: PCPCA(d, gamma=0.4, scale="pooled"),
    ):
        ours, theirs = make(2).fit(split[0], **given), make(2).fit(cases, **pooled)
        np.testing.assert_allclose(ours.components_, theirs.components_, rtol=0, atol=1e-10)
        np.testing.assert_allclose(ours.transform(cases), theirs.transform(cases), rtol=0, atol=1e-9)
    alone = PPCA(2).fit(split[0]), PPCA(2).fit(cases)
    np.testing.assert_allclose(alone[0].loadings_, alone[1].loadings_, rtol=0, atol=1e-10)
    limits = [gamma_limits(split[0], n_components=2, **given), gamma_limits(cases, n_components=2, **pooled)]
    for name, value in limits[1].gamma.items():
        assert limits[0].gamma[name] == pytest.approx(value, rel=1e-10), name
    paths = [contrast_path(PCPCA(2), split[0], gammas=5, **given), contrast_path(PCPCA(2), cases, gammas=5, **pooled)]
    np.testing.assert_allclose(paths[0].eigenvalues, paths[1].eigenvalues, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(paths[0].latents(cases), paths[1].latents(cases), rtol=0, atol=1e-9)


def sum_of(parts):
    first, *others = parts
    for part in others:
        first = first + part
    return first


def test_adding_leaves_the_parts_alone():
    parts = [Moments.from_rows(X[:40]), Moments.from_rows(X[40:])]
    before = [(part.weight, part.mean.copy(), part.scatter.dense().copy()) for part in parts]
    _ = parts[0] + parts[1]
    for part, (weight, mean, scatter) in zip(parts, before, strict=True):
        assert part.weight == weight
        np.testing.assert_array_equal(part.mean, mean)
        np.testing.assert_array_equal(part.scatter.dense(), scatter)


def test_sums_that_are_too_large_are_refused():
    """Before, they were saved, and the file was then called damaged."""
    near, far = (Moments.from_rows([[sign * 1e160, 0.0], [sign * 1e160, 1.0]]) for sign in (1, -1))
    with pytest.raises(ValueError, match="too large to be squared: rescale"):
        _ = near + far
    heavy = Moments.from_rows(np.eye(2), [8e307, 8e307])
    with pytest.raises(ValueError, match="too large to be added: use smaller weights"):
        _ = heavy + heavy


@pytest.mark.parametrize("weight", [1e-200, 1e200])
def test_weights_of_any_size_add_up(weight):
    parts = [Moments.from_rows(part, np.full(45, weight)) for part in (X[:45], X[45:])]
    same(parts[0] + parts[1], Moments.from_rows(X, np.full(90, weight)), 1e-12)


def test_moments_are_equal_to_themselves_alone():
    one, twin = Moments.from_rows(X), Moments.from_rows(X)
    assert one == one
    assert one != twin
    assert len({one, twin}) == 2


def test_only_the_same_features_can_be_added(need):
    pandas = need("pandas")
    frame = pandas.DataFrame(X[:, :3], columns=["a", "b", "c"])
    named, plain = Moments.from_rows(frame), Moments.from_rows(X[:, :3])
    assert named.names == ("a", "b", "c")
    assert (named + plain).names == (plain + named).names == ("a", "b", "c")
    for other in (frame[["b", "a", "c"]], frame[["a", "b"]], X):
        with pytest.raises(GroupError, match="same features, in the same order"):
            _ = named + Moments.from_rows(other)
        with pytest.raises(GroupError, match="same order, can be subtracted"):
            _ = named - Moments.from_rows(other)
    with pytest.raises(GroupError, match="the same but in a different order"):
        PCPCA(1).fit(named, background=Moments.from_rows(frame[["b", "a", "c"]]))
    with pytest.raises(TypeError):
        _ = named + 1


@pytest.mark.parametrize("n", [80, 90])
def test_only_a_part_can_be_subtracted(n):
    with pytest.raises(ValueError, match=f"weight 90 cannot be subtracted from moments of weight {n}: the part weighs"):
        _ = Moments.from_rows(X[:n]) - Moments.from_rows(X)


def test_moments_and_rows_do_not_mix():
    for left, right in ((X, Moments.from_rows(X)), (Moments.from_rows(X), X)):
        with pytest.raises(GroupError, match=r"Moments.from_rows for both"):
            PCPCA(1).fit(left, background=right)
    with pytest.raises(GroupError, match=r"of the foreground sums to 1: weights count rows.*Multiply them"):
        PCPCA(1).fit(Moments.from_rows(X, np.eye(90)[0]), background=Moments.from_rows(X))


# ---------------------------------------------------------------------- files


@pytest.mark.filterwarnings("ignore:Cases and controls are the same table")
@pytest.mark.parametrize("named", [False, True])
def test_saved_and_loaded(tmp_path, named, need):
    table = need("pandas").DataFrame(X, columns=[f"gene {j}" for j in range(7)]) if named else X
    moments = Moments.from_rows(table, COUNTS + 0.25)
    moments.save(tmp_path / "moments.npz")
    twin = load(tmp_path / "moments.npz")
    assert isinstance(twin, Moments)
    assert (twin.weight, twin.names) == (moments.weight, moments.names)
    np.testing.assert_array_equal(twin.mean, moments.mean)
    np.testing.assert_array_equal(twin.scatter.dense(), moments.scatter.dense())
    again = PCPCA(2, gamma=0.2).fit(twin, background=twin).components_
    np.testing.assert_array_equal(again, PCPCA(2, gamma=0.2).fit(moments, background=moments).components_)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight": 0.0}, "weight"),
        ({"weight": np.inf}, "weight"),
        ({"mean": np.zeros(3)}, "do not fit each other"),
        ({"mean": np.full(7, np.nan)}, "mean is not finite"),
        ({"scatter": DenseScatter(np.triu(np.ones((7, 7))))}, "scatter matrix"),
        ({"scatter": DenseScatter(np.ones((7, 6)))}, "matrix has the shape"),
        ({"names": ("a", "b")}, "do not fit each other"),
    ],
)
def test_impossible_files_are_refused(tmp_path, change, message):
    parts = vars(Moments.from_rows(X)) | change
    Moments(**parts).save(tmp_path / "moments.npz")
    with pytest.raises(ModelFileError, match=message):
        load(tmp_path / "moments.npz")


# ---------------------------------------------------------------------- rows are read once, and not in vain


@pytest.fixture
def multiplied(monkeypatch):
    """The rows of which a D x D product was made, as they were given to the product."""
    found, original = [], _numpy.scatter

    def counted(rows, mean, weights=None):
        found.append(rows)
        return original(rows, mean, weights)

    monkeypatch.setattr(_numpy, "scatter", counted)
    return found


def test_rows_are_multiplied_once(multiplied):
    """The control of the counter, and the promise: fit, its limit and the background's model read the rows once."""
    cases, controls = X.copy(), Y.copy()
    PCPCA(2).fit(cases, background=controls)
    assert len(multiplied) == 2
    assert np.shares_memory(multiplied[0], cases)
    assert np.shares_memory(multiplied[1], controls)


def test_one_missing_value_is_noticed_before_anything_is_multiplied(multiplied):
    """A D x D product of the raw rows would be thrown away, whichever group lacks the value."""
    for group in (0, 1):
        tables = [X.copy(), Y.copy()]
        tables[group][-1, -1] = np.nan
        PCPCA(2, gamma=0.2).fit(tables[0], background=tables[1])
        for call in (
            lambda tables=tables: CLVM(1, 1).fit(tables[0], background=tables[1]),
            lambda tables=tables, group=group: Moments.from_rows(tables[group]),
        ):
            before = len(multiplied)
            with pytest.raises(NonFiniteError):
                call()
            assert len(multiplied) == before
        for rows in multiplied:
            assert np.isfinite(rows).all()
            assert not any(np.shares_memory(rows, table) for table in tables)
    assert len(multiplied) == 4  # of the complete rows of each group, which are many: once
