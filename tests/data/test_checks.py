"""Checks of tables: each finds what it is for, and none speaks where there is nothing."""

import time

import numpy as np
import pytest
import scipy.sparse as sp

from contrapca import Study, check_tables, contrast_test
from contrapca._util.text import plural
from contrapca.data import (
    Groups,
    looks_like_replicates,
    study_of,
)
from contrapca.data.checks import Finding, Given, alike_labels, check_groups, repeated_names, swapped_names
from contrapca.data.checks._columns import far_cells
from contrapca.data.checks._tables import CHECKS, distant_means, shared_rows, transposed
from contrapca.exceptions import TableWarning
from contrapca.reading._findings import dropped_columns


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def checks(found):
    return [finding.check for finding in found]


def given(X, Y, columns=None, names=(None, None)):
    return Given(Groups.of(X, Y), columns, Groups.of(X, Y).like(names))


def shared(X, Y):
    return list(shared_rows(given(X, Y)))


def as_columns(X, columns, names, others):
    return list(transposed(given(X, X[::-1] + 1, columns, (names, others))))


OF_COLUMNS = ("identifier", "missing code", "constant", "duplicate columns")


def columns_found(X, names=None, Y=None):
    names = names or [f"gene{j}" for j in range(X.shape[1])]
    groups = Groups.of(X.astype(float), Y)
    found = check_groups(Given(groups, names, groups.map(lambda _: None)))
    return {finding.check: finding.text("command") for finding in found if finding.check in OF_COLUMNS}


# ---------------------------------------------------------------- nothing to find


def clean(kind, n, D, rng):
    """A function of a number of rows: tables of one kind, with nothing wrong in them."""
    sd, mean = np.exp(rng.normal(size=D) / 2), rng.normal(size=D)
    return {
        "normal": lambda k: rng.normal(size=(k, D)) * sd + mean,
        "heavy tails": lambda k: rng.standard_t(3, size=(k, D)) * sd + mean,
        "lognormal": lambda k: np.exp(rng.normal(size=(k, D)) / 2 + mean),
        "counts": lambda k: rng.poisson(np.exp(mean + 1), size=(k, D)).astype(float),
        "overdispersed counts": lambda k: rng.poisson(rng.gamma(0.5, 2 * np.exp(mean + 3), size=(k, D))).astype(float),
        "large whole numbers": lambda k: np.rint(np.exp(rng.normal(size=(k, D)) / 3 + mean + 9)),
        "binary": lambda k: (rng.random((k, D)) < np.clip(0.5 + mean / 5, 0.05, 0.95)).astype(float),
        "ratings": lambda k: rng.integers(-3, 4, size=(k, D)).astype(float),
        "rounded": lambda k: np.round(rng.normal(size=(k, D)) * sd + mean, 1),
        "some whole numbers": lambda k: np.where(
            np.arange(D) % 3, rng.normal(size=(k, D)), np.rint(rng.normal(size=(k, D)) * 15 + 60)
        ),
        "missing values": lambda k: np.where(rng.random((k, D)) < 0.1, np.nan, rng.normal(size=(k, D)) * sd + mean),
        "hundreds": lambda k: rng.normal(size=(k, D)) * 300 + 500,
        "counts with missing values": lambda k: np.where(rng.random((k, D)) < 0.1, np.nan, rng.poisson(3, (k, D))),
        "logarithms of counts": lambda k: np.log2(rng.poisson(np.exp(mean / 2 + 1), size=(k, D)) + 0.5),
        "standardised counts": lambda k: np.round((rng.poisson(1.2, (k, D)) - 1.2) / 1.2, 1),
    }[kind]


KINDS = [
    *("normal", "heavy tails", "lognormal", "counts", "overdispersed counts", "large whole numbers", "binary"),
    *("ratings", "rounded", "some whole numbers", "missing values", "hundreds", "counts with missing values"),
    *("logarithms of counts", "standardised counts"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_no_false_alarms(kind):
    """On 20 tables of each kind; advice on raw values has a test of its own."""
    rng = np.random.default_rng(KINDS.index(kind))
    found = []
    for _ in range(20):
        (n, m), D = rng.integers(20, 150, size=2).tolist(), int(rng.integers(3, 50))
        rows = clean(kind, n, D, rng)
        X, Y = rows(n), rows(m)
        names = [f"s{i}" for i in range(n)], [f"c{i}" for i in range(m)]
        labels = rng.choice(["mild", "severe", "none"], n)
        found += check_tables(Study(X, background=Y, labels=labels, names=names))
    assert set(checks(found)) <= ({"raw values"} if "counts" in kind or "whole" in kind else set())


def test_a_real_set_has_no_false_alarms(mouse_raw, need):
    X, Y, genotype, names = mouse_raw
    pandas = need("pandas")
    frames = [pandas.DataFrame(table, columns=names) for table in (X, Y)]
    found = check_tables(Study(frames[0], background=frames[1], labels=genotype))
    assert checks(found) == ["duplicate columns"]  # which is so in the published table
    assert "'ARC_N' and 'pS6_N' hold the same values in every row" in found[0].sentence


@pytest.mark.slow
def test_large_real_sets_have_no_false_alarms(data_folder):
    from experiments._data import load_corrupted_mnist, load_zheng_bmmc

    for data in (load_zheng_bmmc(), load_corrupted_mnist()):
        assert check_tables(Study(data.foreground, background=data.background, labels=data.labels)) == []


# ---------------------------------------------------------------- columns

COUNT = np.arange(40.0)


@pytest.mark.parametrize(
    ("name", "column", "found"),
    [
        ("patient_id", np.random.default_rng(1).permutation(40), True),
        ("sampleID", np.random.default_rng(1).integers(0, 9, 40), True),
        ("patient", np.repeat(np.arange(10.0), 4), True),
        ("x", COUNT, True),  # counts the rows
        ("x", COUNT[::-1] * 3, True),
        ("x", np.random.default_rng(1).choice(1_000_000, 40, replace=False), True),  # all distinct, alone in the table
        ("x", np.random.default_rng(1).integers(20, 60, 40), False),
        ("cell number", np.random.default_rng(1).integers(20, 60, 40), False),
        ("visit number", np.random.default_rng(1).permutation(40), True),
        ("patient_id", normal(40), True),  # whatever it holds
        ("patient_id", np.ones(40), False),  # constant, which is said elsewhere
        ("Patient", np.where(np.arange(40) == 5, np.nan, np.arange(40) // 4), True),  # with an empty cell
        ("sample.id", np.repeat(np.arange(10.0), 4) + np.tile([0.1, 0.2, 0.3, 0.4], 10), True),  # patient.visit
        ("x", np.where(np.arange(40) % 9 == 4, np.nan, COUNT), True),
        ("x", np.where(np.arange(40) == 7, np.nan, np.random.default_rng(1).permutation(40)), True),
        ("x", np.where(np.arange(40) % 7 == 0, COUNT, np.nan), False),  # six values in order are chance
        ("index", normal(40), False),  # as in body mass index
    ],
)
def test_identifiers(name, column, found):
    X = np.column_stack([normal(40, 12), column])
    names = [*(f"gene{j}" for j in range(12)), name]
    text = columns_found(X, names).get("identifier", "")
    assert bool(text) is found
    if found:
        assert f'add --ignore "{name}".' in text or f"add --ignore {name}." in text


def test_distinct_whole_numbers_are_common_in_counts():
    X = np.rint(np.exp(normal(40, 12) + 12))
    assert len(np.unique(X[:, 0])) == 40
    assert "identifier" not in columns_found(X)


@pytest.mark.parametrize(
    ("code", "column", "found"),
    [
        (999, normal(50), True),
        (-999, normal(50), True),
        (-9999, 100 + normal(50), True),
        (-1, np.abs(normal(50)) * 9, True),
        (-1, normal(50), False),  # other negative values
        (-1, np.random.default_rng(0).integers(0, 3, 50), False),  # -1, 0, 1, 2 is a scale
        (999, 600 + 150 * normal(50), False),  # not far from the others
        (77, normal(50), False),  # an outlier, but no usual code
    ],
)
def test_codes_for_missing_values(code, column, found):
    X = np.column_stack([normal(50, 4, seed=2), column])
    X[[3, 30], 4] = code
    text = columns_found(X).get("missing code", "")
    assert bool(text) is found
    if found:
        assert f"{code} occurs in 2 cells of 'gene4'" in text
        assert text.endswith(f"add --missing {code}.")
    X[3, 4] = 0.5
    assert "missing code" not in columns_found(X)  # one cell may be chance


SCALE = np.random.default_rng(3).integers(0, 4, 60)


@pytest.mark.parametrize(
    ("code", "column", "found"),
    [
        (-1, SCALE, True),
        (-1, SCALE + 1, True),
        (-9, SCALE, True),
        (-9, SCALE * 5, True),
        (9, SCALE, True),
        (9, 1 + np.random.default_rng(4).integers(0, 5, 60), True),
        (99, SCALE * 9, True),
        (-1, np.round(np.random.default_rng(5).random(60), 3), True),
        (-99, np.random.default_rng(5).integers(0, 150, 60), True),
        (-1, SCALE - 2, False),  # a scale with other negative values
        (9, np.random.default_rng(4).integers(1, 9, 60), False),  # from 1 to 9
        (9, np.random.default_rng(6).negative_binomial(0.3, 0.2, 60), False),  # the tail of counts
        (4, SCALE, False),
        (-3, SCALE, False),
        (-1, np.log10(SCALE + 0.1), False),
        (-999, np.log1p(SCALE), True),
    ],
)
def test_codes_on_small_scales(code, column, found):
    X = np.column_stack([normal(60, 4, seed=2), column])
    X[[3, 20, 30, 41], 4] = code
    assert ("missing code" in columns_found(X)) is found


def test_usual_values_are_no_codes_by_chance_in_wide_tables():
    """Heavy tails and counts have values such as 9 and -1 alone at one end of a few of many columns."""
    rng = np.random.default_rng(1)
    counts = rng.poisson(rng.gamma(0.2, 5 * np.exp(rng.normal(size=1500)), size=(60, 1500))).astype(float)
    tails = np.round(rng.standard_t(3, size=(60, 1500)) * 2 + 9)
    for table in (counts, tails):
        assert "missing code" not in columns_found(table)


def test_constant_and_duplicate_columns():
    X, Y = normal(50, 6), normal(40, 6, seed=1)
    X[:, 2] = Y[:, 2] = 5
    X[:, 4], Y[:, 4] = X[:, 1], Y[:, 1]
    found = columns_found(X, Y=Y)
    assert "'gene2' has the same value in every row" in found["constant"]
    assert "'gene1' and 'gene4' hold the same values in every row" in found["duplicate columns"]
    Y[7, 4] = 0
    Y[7, 2] = 0
    assert columns_found(X, Y=Y) == {}
    rare = np.zeros((50, 400))  # columns of a few ones are equal by chance
    rare[np.random.default_rng(0).integers(0, 50, 400), np.arange(400)] = 1
    assert "duplicate columns" not in columns_found(rare)


# ---------------------------------------------------------------- two tables


def test_shared_rows():
    X, Y = normal(50, 8), normal(40, 8, seed=1)
    assert shared(X, Y) == []
    Y[5:8] = X[20:23]
    assert "3 rows of the controls are also among the cases" in shared(X, Y)[0].sentence
    assert checks(shared(X, X.copy())) == ["same table"]
    X[3, 2] = np.nan
    assert checks(shared(X, X.copy())) == ["same table"]
    zeros = (np.random.default_rng(0).random((80, 8)) < 0.1).astype(float)
    assert shared(zeros[:40], zeros[40:]) == []  # rows of zeros are equal by chance


def test_many_shared_rows_need_not_be_long():
    X = normal(30, 2)
    assert "30 rows of the controls are also among the cases" in shared(X, X[::-1])[0].sentence
    mixed = np.vstack([normal(20, 2, seed=1), X[:15]])
    assert "15 rows" in shared(X, mixed)[0].sentence
    assert shared(X[:8], X[7::-1]) == []  # so few may be chance
    ratings = np.random.default_rng(0).integers(1, 6, (60, 2)).astype(float)
    assert shared(ratings[:30], ratings[30:]) == []  # they occur several times within a table, too


def test_transposed():
    features = [f"gene{j}" for j in range(30)]
    X = normal(30, 12) + 4 * normal(30, 1, seed=1)  # rows have means of their own, as features
    samples = [f"s{i}" for i in range(12)]
    assert "add --transpose" in as_columns(X, samples, features, features)[0].text("command")
    assert as_columns(X.T, features, samples, [f"c{i}" for i in range(12)]) == []
    paired = [f"P{i}" for i in range(30)]  # the same patients in both tables
    assert as_columns(normal(30, 12) + 4 * normal(12, seed=2), features[:12], paired, paired) == []
    assert as_columns(normal(30, 12), [f"sample_{i}" for i in range(12)], features, None) != []
    assert as_columns(normal(30, 12), [f"sample_{i}" for i in range(12)], None, None) == []
    assert as_columns(normal(30, 12), None, None, None) == []


def test_means_far_apart():
    assert distant_means(np.full(8, 1.0), None) == []
    assert "In 6 of 8 features" in distant_means(np.array([3.0] * 6 + [0.0] * 2), None)[0].sentence
    assert distant_means(np.array([3.0] * 4 + [0.0] * 4), None) == []
    far = distant_means(np.array([0.0, 12.0]), ["a", "b"])[0]
    assert "(the first: 'b')" in far.sentence
    assert "Pipeline" in far.hint
    assert "Pipeline" not in far.command
    X, Y = normal(50, 8), normal(40, 8, seed=1) + 3
    assert checks(check_tables(X, background=Y)) == ["batch"]
    Y[0, 0] = np.nan
    assert checks(check_tables(X, background=Y)) == ["batch"]


@pytest.mark.parametrize(
    ("cases", "controls", "found"),
    [
        ("controls", "cases", True),
        ("healthy_2021", "tumor-2021", True),
        ("cases", "controls", False),
        ("normalised_cases", "normalised_controls", False),
        ("cases_vs_controls", "controls_only", False),
        ("a", "b", False),
    ],
)
def test_swapped_names(cases, controls, found):
    assert bool(swapped_names(cases, controls)) is found


# ---------------------------------------------------------------- names and labels


def test_labels_that_are_spelt_alike():
    found = alike_labels(["Control", "control", "control ", "case", "c a"], "Values of 'g'")[0].sentence
    assert "'Control' (1 row), 'control' (1 row), 'control ' (1 row)" in found
    assert alike_labels(["a", "b", "b"], "Labels") == []
    assert checks(check_tables(Study(normal(3, 4), background=normal(5, 4, seed=1), labels=["a", "A", None]))) == [
        "spelling"
    ]


def test_a_background_label_that_is_spelt_in_two_ways():
    X, y = normal(6, 3), ["case", "case", "control", "control", "Control", "case"]
    with pytest.warns(TableWarning, match="Rows labelled 'Control' count as foreground"):
        study_of(X, None, "fit", y=y, background_label="control")


def test_repeated_names():
    assert repeated_names(["a", "b"], "cases") == []
    assert repeated_names(None, "cases") == []
    assert "1 row name of the cases occurs more than once ('a')" in repeated_names(["a", "b", "a"], "cases")[0].sentence


def test_numbers_as_row_names_are_no_replicates():
    numbers = [f"{value:.3f}" for value in normal(80)]
    assert looks_like_replicates(numbers) is None
    assert looks_like_replicates([f"{300 + k}.{i}" for k in range(8) for i in (1, 2, 3)]) is not None
    assert looks_like_replicates([f"d{k}_{i}" for k in range(8) for i in (4, 7)]) is not None


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        (["12%", "7.5 %", "", "30%"], "because of percent signs (such as '12%'). To use it, add --percent"),
        (
            ["1,234", "900", "12,345,678"],
            "of thousands separators (such as '1,234'). To use it, add --thousands",
        ),
        (["5 mg", "12.5 mg", "7 mg"], "because of units (such as '5 mg'). To use it, write the unit into the name"),
        (["37°C", "38°C"], "because of units"),
        (["yes", "no", "No"], "it holds words such as 'yes', not numbers. Write 1 and 0"),
        (["$1.50", "$2", "-$3,100.25"], "because of currency signs (such as '$1.50'). To use it, write the currency"),
        (["1.50 €", "2 €"], "because of currency signs"),
        (["1.2±0.1", "3 +/- 0.2"], "because of errors after ± (such as '1.2±0.1'). To use it, leave only the number"),
        (["2.5", "(1.5)", "(4)", "3"], "because of brackets (such as '(1.5)')"),
        (["120/80", "130/90"], "because of second numbers in the cells (such as '120/80')"),
        (["1.5 (0.3)", "2 [1.2-1.8]"], "because of second numbers in the cells"),
        (["1.5*", "2", "3*"], "because of signs around the numbers (such as '1.5*'). To use it, write"),
        (["5\N{EN DASH}10", "10\N{EN DASH}20"], "because of second numbers in the cells"),
        (["<0.5", ">3"], "because of signs around the numbers"),
        (["5 mg", "1 g"] * 10, "because of units that differ (such as '5 mg')"),
        (["mild", "severe"], None),
        (["3 Main", "5 Oak", "7 Elm"], None),
        (["309-1", "309-2"], None),
        (["#1", "#2"], None),
        (["12:30", "1:05"], None),
        (["01/02/2024", "03/02/2024"], None),
        (["+", "++"], None),
        (["5a", "6b", "7c"], None),
        (["2024-01-01", "2024-02-01"], None),
        (["s1", "s2"], None),
        (["", ""], None),
    ],
)
def test_columns_that_are_dropped(cells, says):
    found = dropped_columns({"dose": cells})
    assert bool(found) is (says is not None)
    if says:
        assert says in found[0].text("command")
        assert found[0].sentence.startswith("'dose' is not used as a feature")


@pytest.mark.parametrize("cell", ["(" + "1." * 20_000, "1" * 40_000 + "x", "1 (" + "2-" * 20_000, "1,234" * 9_000])
def test_long_cells_take_no_time(cell):
    start = time.process_time()
    assert dropped_columns({"dose": [cell] * 20}) == []
    assert time.process_time() - start < 0.5


# ---------------------------------------------------------------- together


def test_every_finding_has_a_hint_in_both_words():
    X, Y = normal(60, 8), normal(50, 8, seed=1)
    X[:, 0], Y[:, 0] = np.arange(60), np.arange(100, 150)
    X[[1, 5], 1] = 999
    X[:, 2] = Y[:, 2] = 1
    X[:, 3], Y[:, 3] = X[:, 4], Y[:, 4]
    Y[:, 5] += 30
    found = check_tables(
        Study(X, background=Y, names=(["a", "a", *(f"s{i}" for i in range(58))], None), labels=["b", "B"] * 30)
    )
    assert checks(found) == [
        *("spelling", "repeated names", "identifier", "missing code", "constant", "duplicate columns", "batch"),
    ]
    for finding in [*found, *shared(X, X), *shared(X, np.vstack([Y, X]))]:
        assert finding.hint
        assert str(finding) == f"{finding.sentence} {finding.hint}"
        assert "--" not in finding.text("python")
        assert "X" not in finding.text("command")
        assert "=" not in finding.text("command")


def test_a_check_is_a_function_and_a_line_in_the_list(monkeypatch):
    def negative(given):
        count = sum(int((table < 0).sum()) for table in given.rows)
        return [Finding("negative", f"{count} values are below zero.", "Check the units.")] if count else []

    X = np.abs(normal(50, 4))
    monkeypatch.setattr("contrapca.data.checks._tables.CHECKS", [*CHECKS, negative])
    assert check_tables(X, background=X[::-1] + 0.1) == []
    X[3, 2] = -1.5
    assert str(check_tables(X, background=normal(40, 4) ** 2)[-1]) == "1 values are below zero. Check the units."


def test_other_kinds_of_tables(need):
    pandas = need("pandas")
    X = pandas.DataFrame(normal(12, 4), columns=list("abcd"), index=[f"d{k}_{i}" for k in range(4) for i in range(3)])
    assert checks(check_tables(X, background=normal(5, 4))) == ["replicates"]
    assert check_tables(Study(X, background=normal(5, 4), blocks=(list("aaabbbcccddd"), list("efghi")))) == []
    sparse = sp.random_array((40, 5), density=0.3, random_state=0)
    assert check_tables(sparse, background=sparse) == []  # columns of sparse tables are not looked at


@pytest.mark.parametrize("value", [1e12, -1e12, 1e60, 1000.0])
@pytest.mark.parametrize("group", [0, 1])
def test_a_cell_far_from_all_others_is_named(value, group):
    tables = [normal(60, 5), normal(40, 5, seed=1)]
    tables[group][7, 3] = value
    [finding] = check_tables(tables[0], background=tables[1])
    assert finding.check == "far cell"
    assert f"{value:.4g} in 'x3' of row 7 ({['cases', 'controls'][group]})" in finding.sentence
    with pytest.warns(TableWarning, match="'x3' of row 7"):
        contrast_test(tables[0], background=tables[1], random_state=0)
    named = check_tables(Study(tables[0], background=tables[1], names=([f"a{i}" for i in range(60)], None)))[0]
    assert ("'a7'" in named.sentence) == (group == 0)


def test_up_to_three_far_cells_of_a_column():
    for count in (2, 3, 4):
        X = normal(60, 5)
        X[:count, 2] = 1e8 + np.arange(count)
        found = [
            finding for finding in check_tables(X, background=normal(40, 5, seed=1)) if finding.check == "far cell"
        ]
        assert len(found) == (count < 4)  # more are values of a kind
        assert (
            not found or f"So {'is' if count == 2 else 'are'} {plural(count - 1, 'other value')}" in found[0].sentence
        )
    X[:, 2] = np.nan
    X[5, 1] = 1e9
    assert "1e+09 in 'x1' of row 5" in check_tables(X, background=normal(40, 5, seed=1))[0].sentence


def heavy(kind, random, n, D):
    """Tables whose largest values are no mistakes."""
    draws = {
        "normal": lambda: random.standard_normal((n, D)),
        "t3": lambda: random.standard_t(3, (n, D)),
        "lognormal": lambda: np.exp(random.standard_normal((n, D))),
        "counts": lambda: np.log1p(random.poisson(random.gamma(0.3, 3, (n, D)))),
        "sparse": lambda: random.poisson(0.02, (n, D)) * random.gamma(1, 1, (n, D)),
        "binary": lambda: (random.random((n, D)) < 0.01) * 1.0,
    }
    return draws[kind]()


@pytest.mark.parametrize("kind", ["normal", "t3", "lognormal", "counts", "sparse", "binary"])
def test_heavy_tails_are_no_far_cells(kind):
    """200 tables of each kind, of 12 to 300 rows: none has a far cell, and each would have one with 1e6 in it."""
    random = np.random.default_rng(3)
    for _ in range(200):
        n = int(random.integers(12, 300))
        X, Y = heavy(kind, random, n, 20), heavy(kind, random, 12, 20)
        assert list(far_cells(given(X, Y))) == []
    X = heavy("normal", random, n, 20)
    X[3, 2] = 1e6
    assert list(far_cells(given(X, Y)))
