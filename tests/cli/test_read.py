"""`contrapca.read`: a study from files, as the command line reads them."""

import numpy as np
import pytest
import scipy.sparse as sp

import contrapca
from contrapca import ContraPCA, read
from contrapca.exceptions import TableFileError, TableWarning
from csvfiles import write_csv

NAMES = [f"gene{j}" for j in range(6)]


@pytest.fixture(autouse=True)
def _polars(need):
    need("polars")


@pytest.fixture
def pair():
    rng = np.random.default_rng(0)
    return rng.normal(size=(30, 6)) * [3, 1, 1, 1, 1, 1], rng.normal(size=(24, 6))


def written(folder, ending, tables, need):
    """The two tables in files of one kind."""
    files = [folder / f"{name}{ending}" for name in ("cases", "controls")]
    for file, table in zip(files, tables, strict=True):
        if ending in (".csv", ".tsv"):
            rows = table.tolist()
            text = "\n".join(("," if ending == ".csv" else "\t").join(map(str, row)) for row in [NAMES, *rows])
            file.write_text(text)
        elif ending == ".xlsx":
            with need("xlsxwriter").Workbook(file) as book:
                sheet = book.add_worksheet()
                for k, row in enumerate([NAMES, *table.tolist()]):
                    sheet.write_row(k, 0, row)
        elif ending == ".parquet":
            need("polars").DataFrame(table, schema=NAMES).write_parquet(file)
        elif ending == ".npy":
            np.save(file, table)
        elif ending == ".npz":
            sp.save_npz(file, sp.csr_array(table))
        else:
            anndata, pandas = need("anndata"), need("pandas")
            anndata.AnnData(table, var=pandas.DataFrame(index=NAMES)).write_h5ad(file)
    return files


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".xlsx", ".parquet", ".npy", ".npz", ".h5ad"])
def test_every_kind_of_file(tmp_path, pair, need, ending):
    if ending == ".xlsx":
        need("fastexcel")
    cases, controls = written(tmp_path, ending, pair, need)
    study = read(cases, background=str(controls))
    for own, table in zip(study.rows, pair, strict=True):
        np.testing.assert_allclose(own.toarray() if sp.issparse(own) else own, table)
    named = ending not in (".npy", ".npz")
    assert study.features == (tuple(NAMES) if named else None)
    model = ContraPCA(1).fit(study)
    assert hasattr(model, "feature_names_in_") == named
    np.testing.assert_allclose(model.components_, ContraPCA(1).fit(pair[0], background=pair[1]).components_, atol=1e-9)


@pytest.fixture
def one_file(tmp_path, pair):
    """One file of all samples, with columns of each kind."""
    X, Y = pair
    rows = [
        [f"s{k}", "ill" if k < 30 else "well", f"d{k % 12}", 20 + k % 7, ["f", "m"][k % 2], k % 3, 1 + k % 2, *row]
        for k, row in enumerate([*X.tolist(), *Y.tolist()])
    ]
    columns = ["sample", "state", "donor", "age", "sex", "batch", "weight", *NAMES]
    write_csv(tmp_path / "all.csv", columns, rows)
    return tmp_path / "all.csv"


def test_columns_say_what_is_known_of_the_samples(one_file, pair):
    given = {"covariates": ["age", "sex"], "labels": "batch", "weights": "weight"}
    study = read(one_file, group="state", background="well", pairs="donor", **given)
    assert study.features == tuple(NAMES)
    assert study.paired
    assert list(study.blocks.background)[:2] == ["d6", "d7"]
    assert list(study.covariates.foreground) == ["age", "sex"]
    assert study.covariates.foreground["sex"].tolist()[:2] == ["f", "m"]
    assert study.labels.foreground.tolist()[:4] == ["0", "1", "2", "0"]
    assert study.label_name == "batch"
    assert study.weights.foreground.tolist()[:2] == [1, 2]
    assert study.sample_names.background[0] == "s30"
    np.testing.assert_allclose(study.rows.foreground, pair[0])  # as read, with the effect of the covariates
    fewer = read(one_file, group="state", background="well", blocks="donor", ignore=["age", "batch", "weight", "gene0"])
    assert fewer.features == tuple(NAMES[1:])
    assert not fewer.paired
    alone = read(one_file, ignore=["age", "batch", "weight"])
    assert len(alone) == 54
    assert len(alone.rows) == 1


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"background": "nothing.csv"}, TableFileError, "There is no file"),
        ({"background": "healthy", "group": "state"}, ValueError, "background: 'healthy' does not occur in column"),
        ({"background": "well"}, ValueError, r"add group='state' if it marks the controls"),
        ({"background": "well", "group": "stat"}, ValueError, r"group: .* has no column 'stat'. Did you mean 'state'"),
        ({"background": "well", "group": "state", "ignore": "gen0"}, ValueError, "ignore: no table has a column"),
        ({"background": "well", "group": "state", "weights": "sex"}, ValueError, "not numbers"),
        ({"background": "well", "group": "state", "pairs": "sample"}, TableFileError, "in one group only"),
        ({"group": "state"}, ValueError, "background= is needed"),
        ({"blocks": "donor", "pairs": "donor"}, ValueError, "pairs= and blocks= cannot be used together"),
        ({"layer": "log"}, TableFileError, "^layer: "),
    ],
)
def test_refusals_name_arguments(one_file, monkeypatch, given, kind, message):
    monkeypatch.chdir(one_file.parent)
    with pytest.raises(kind, match=message):
        read(one_file, **given)


def test_what_may_be_a_mistake_is_a_warning(tmp_path, pair):
    for name, table in zip(("cases", "controls"), pair, strict=True):
        rows = [[*row, k] for k, row in enumerate(table.tolist())]
        write_csv(tmp_path / f"{name}.csv", [*NAMES, "MouseID"], rows)
    with pytest.warns(TableWarning, match="'MouseID' is not analysed") as caught:
        study = read(tmp_path / "cases.csv", background=tmp_path / "controls.csv")
    assert study.features == tuple(NAMES)
    assert not any("--" in str(warning.message) for warning in caught)


def test_labels_of_a_file_are_numbers_if_they_are_a_scale(tmp_path):
    def labels(cells):
        rows = [f"{cell},{k / 7},{k % 3 / 3}" for k, cell in enumerate(map(str, cells))]
        (tmp_path / "all.csv").write_text("\n".join(["label,a,b", *rows]))
        return read(tmp_path / "all.csv", labels="label").labels.foreground

    np.testing.assert_array_equal(labels([*range(25), ""]), [*range(25), np.nan])
    for few in (["1", "2", "1"], ["0.5", "1.5", ""], ["a", "2"], ["001", "x02"]):
        assert labels(few).tolist() == few  # as they are written
    assert labels([*range(25), "low"]).dtype.kind == "U"


def test_it_is_what_the_command_analyses(tmp_path, monkeypatch, one_file, run, need):
    """Its model is the one that `contrapca fit` saves, which takes the covariates out of new rows, too."""
    monkeypatch.chdir(tmp_path)
    command = ["fit", "all.csv", "--group", "state", "--background", "well", "--covariates", "age", "--no-test"]
    done = run(*command, "--ignore", "batch", "weight", "-o", "out")
    assert done.code == 0, done.err
    with pytest.warns(TableWarning, match="Add blocks='donor'"):
        study = read("all.csv", group="state", background="well", covariates="age", ignore=["batch", "weight"])
    saved, model = contrapca.load("out/model.npz"), ContraPCA(2, random_state=0).fit(study)
    np.testing.assert_allclose(saved.components_, model.components_, atol=1e-9)
    assert saved.covariate_names_ == model.covariate_names_
