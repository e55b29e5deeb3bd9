"""What the documents promise: examples run and print what is shown, links lead somewhere, names and messages exist."""

import ast
import contextlib
import importlib
import importlib.util
import io
import json
import re
import warnings
from pathlib import Path
from types import ModuleType

import pytest

import contrapca
import contrapca.datasets
import contrapca.exceptions
import contrapca.plots
from tutorial import same_text

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "docs").rglob("*.md")
    if not {"_build", "jupyter_execute"} & set(path.relative_to(ROOT).parts)
)
NOTEBOOKS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "notebooks").glob("*.ipynb"))
DOCUMENTS = ["README.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md", *PAGES]
# An example, and what it prints if that is shown below it.
EXAMPLE = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.S)
LIBRARIES = {
    "docs/datasets.md": ["matplotlib"],
    "docs/gallery.md": ["matplotlib"],
    "docs/guide/anndata.md": ["anndata", "matplotlib"],
    "docs/guide/report.md": ["jinja2"],
    "docs/guide/uncertainty.md": ["nutpie"],
    "docs/paper.md": ["matplotlib", "nutpie", "PIL"],
    "docs/guide/designs.md": ["pandas"],
    "docs/guide/study.md": ["pandas", "polars"],
    "docs/scale.md": ["dask", "h5py", "pandas", "pyarrow", "zarr"],
}


def read(document):
    return (ROOT / document).read_text(encoding="utf-8")


def run_page(document):
    """Run the examples of a page in order, in one namespace; compare what they print; return the namespace."""
    names: dict = {}
    for code, shown in EXAMPLE.findall(read(document)):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, document, "exec"), names)
        if shown:
            assert same_text(printed.getvalue(), shown), f"{document} shows\n{shown}\nbut prints\n{printed.getvalue()}"
    return names


# Experiments, pictures, draws, graphs of cells.
SLOW_PAGES = ("docs/paper.md", "docs/gallery.md", "docs/guide/uncertainty.md", "docs/guide/anndata.md")


def pages_to_run():
    for page in DOCUMENTS:
        if EXAMPLE.search(read(page)):
            yield pytest.param(page, marks=pytest.mark.slow if page in SLOW_PAGES else ())


@pytest.mark.parametrize("document", list(pages_to_run()))
def test_examples_run(document, tmp_path, monkeypatch, need, request):
    for library in LIBRARIES.get(document, []):
        need(library)
    if "load_mouse_protein" in read(document):  # not to be downloaded by a test
        request.getfixturevalue("data_folder")
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        if document == "docs/paper.md":  # its short chains; the page says so
            warnings.simplefilter("ignore", contrapca.exceptions.ContrastWarning)
        names = run_page(document)
    assert names
    # Pictures that an example writes are those that the page shows.
    written = {path.name for path in tmp_path.glob("*.png")}
    assert written <= {Path(link).name for link in links(document)}
    if document == "README.md":
        assert names["latents"].shape == (400, 2)
        assert names["new_rows"].shape == (10, 30)
        assert names["test"].n_components == 2
        assert contrapca.load(tmp_path / "model.npz").gamma_ == names["model"].gamma_


def test_readme_has_the_two_commands():
    text = read("README.md")
    assert 'pip install ".[report]" && contrapca demo' in text
    assert 'pip install -e ".[test]" && pytest' in text


def links(document):
    """Targets of links and pictures, without the part after #."""
    return re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", read(document))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_to_files(document):
    for link in links(document):
        assert link.startswith("https://") or (ROOT / document).parent.joinpath(link).exists(), link


def test_every_page_is_in_the_index():
    """Sphinx says so too, but only where it is installed."""
    listed = set()
    for index in ("docs/index.md", "docs/api/index.md"):
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", read(index), re.S):
            entries = [line for line in tree.splitlines() if line and not line.startswith(":")]
            listed |= {(Path(index).parent / entry).as_posix() for entry in entries}
    assert listed == {page.rpartition(".")[0] for page in [*PAGES, *NOTEBOOKS]} - {"docs/index"}


def test_the_guide_is_short():
    [guide] = re.findall(r"```\{toctree\}\n:caption: Guide\n:maxdepth: 1\n\n(.*?)\n```", read("docs/index.md"), re.S)
    assert 5 < len(guide.splitlines()) <= 10


def public_names():
    """Full names of everything public; modules themselves are pages."""
    yield from (
        f"contrapca.{name}"
        for name in contrapca.__all__
        if name != "__version__" and not isinstance(getattr(contrapca, name), ModuleType)
    )
    for module in (contrapca.datasets, contrapca.get, contrapca.pl, contrapca.plots, contrapca.tl):
        yield from (f"{module.__name__}.{name}" for name in module.__all__)
    for name, value in vars(contrapca.exceptions).items():
        if isinstance(value, type) and issubclass(value, Exception):
            yield f"contrapca.exceptions.{name}"


def test_the_reference_has_every_public_name():
    reference = "\n".join(read(page) for page in PAGES if page.startswith("docs/api/"))
    pages = re.findall(r"^   ~?(contrapca\.\S+)$", reference, re.M)
    listed = {*pages, *re.findall(r"^\.\. autoexception:: (\S+)$", reference, re.M)}
    assert len(set(pages)) == len(pages) > 40
    assert not set(public_names()) - listed


def messages():
    """Every text of the source but docstrings, "..." in place of what is filled in."""
    for file in (ROOT / "src").rglob("*.py"):
        nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
        docstrings = {node.value for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "..." for part in node.values]
                yield re.sub(r"\.\.\.(?: \.\.\.)+", "...", "".join(parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
                yield node.value


def test_troubleshooting_quotes_messages_that_exist():
    headings = re.findall(r"^### (.+)$", read("docs/troubleshooting.md"), re.M)
    assert len(headings) > 35
    assert len(set(headings)) == len(headings)
    texts = list(messages())
    assert [
        heading for heading in [*headings, "gamma is too strong"] if not any(heading in text for text in texts)
    ] == ["gamma is too strong"]


def test_math_names_things_that_exist():
    """Every `name` in docs/math.md that looks like ours is one of ours."""
    text = read("docs/math.md")
    files = (file for folder in ("src", "experiments") for file in (ROOT / folder).rglob("*.py"))
    source = "\n".join(file.read_text(encoding="utf-8") for file in files)
    names = set(re.findall(r"`(?:\w+\.)*(\w+)`", text))
    assert len(names) > 20
    external = {"stats", "dsyrk", "name", "gamma_fraction", "missing_simulation", "posterior"}
    missing = {name for name in names - external if not re.search(rf"\b{name}\b", source)}
    assert not missing
    for test_file in re.findall(r"`(tests/[\w/]+\.py)`", text):
        assert (ROOT / test_file).exists(), test_file


@pytest.mark.parametrize(("document", "least"), [("docs/math.md", 50), ("CONTRIBUTING.md", 15)])
def test_functions_are_where_a_document_says(document, least):
    places = re.findall(r"`((?:\w+\.)*_\w+)\.(?!py`)(\w+)`", read(document))
    assert len(places) >= least
    for module, name in places:
        place = importlib.import_module(f"contrapca.{module}")
        assert hasattr(place, name) or importlib.util.find_spec(f"contrapca.{module}.{name}"), f"{module}.{name}"


def test_auto_fraction_is_what_the_documents_say():
    from contrapca.contrast._fit import AUTO_FRACTION

    said = f"{AUTO_FRACTION:g} of"
    for document in ("CHANGELOG.md", "docs/choosing_gamma.md", "src/contrapca/estimators/_pcpca.py"):
        assert said in read(document), document
    assert f'"auto" is **{AUTO_FRACTION:g}**' in read("docs/math.md")


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_notebooks_were_run(notebook):
    """From top to bottom, without errors; `tests/notebooks.py` checks that they still print what they show."""
    cells = [cell for cell in json.loads(read(notebook))["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    kinds = {output.get("name", output["output_type"]) for cell in cells for output in cell["outputs"]}
    assert kinds <= {"stdout", "execute_result", "display_data"}
    assert len(read(notebook)) < 600_000


def test_pictures_are_small():
    pictures = list((ROOT / "docs").rglob("*.png"))
    assert pictures
    assert max(picture.stat().st_size for picture in pictures) < 300_000


CITATION = re.compile(r"(?<![\w#])F([1-9]\d*)\b")  # no colour such as #F15854
LABEL = re.compile(r"^\(f([1-9]\d*)\)=\n\*\*F\1\. \S", re.M)  # a target, and the fact that it leads to
TARGET = re.compile(r"^\(f(\d+)\)=$", re.M)
LINK = re.compile(r"#f(\d+)\)")
# What a reader of the repository cannot open. (Written so that this line does not match itself.)
INTERNAL = re.compile(r"design[\s#]+note|\bDESIG[N]\.md\b", re.I)


def citing_files():
    """Every file that may cite a fact of docs/math.md."""
    for folder in ("src", "tests", "experiments", "benchmarks", "docs"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".md") and not {"_build", "__pycache__"} & set(path.relative_to(ROOT).parts):
                yield str(path.relative_to(ROOT))
    yield from ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")


def dangling(text, labels):
    """What a text cites or links to that has no label, and words that point to pages outside the repository."""
    facts = {f"F{number}" for number in CITATION.findall(text) + LINK.findall(text) if number not in labels}
    return facts | {found.group() for found in INTERNAL.finditer(text)}


def test_facts_are_labelled_once_and_listed_by_subject():
    text = read("docs/math.md")
    labels = LABEL.findall(text)
    assert labels == TARGET.findall(text)
    index = text.partition("\n## ")[0]
    assert sorted(labels) == sorted(re.findall(r"\[F(\d+)\]\(#f\1\)", index))
    assert len(labels) >= 15


def test_citations_resolve():
    labels = set(LABEL.findall(read("docs/math.md")))
    files = list(citing_files())
    assert {document: found for document in files if (found := dangling(read(document), labels))} == {}
    # There is something to check: most facts are cited in the source.
    source = "\n".join(read(document) for document in files if document.startswith("src/"))
    assert len(set(CITATION.findall(source))) > 8


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# as in {fact}'s identity", True),  # a label that does not exist
        ("see [there](math.md#{target})", True),
        ("as the design" + " notes say", True),
        ("# as the design" + "\n# notes say", True),
        ("order='F', C_F, F + 1, 0xF{number}, #F{number}, #f{number}0000;", False),
    ],
)
def test_dangling_citations_are_found(text, found):
    """The control of the test above."""
    labels = set(LABEL.findall(read("docs/math.md")))
    number = max(map(int, labels)) + 1
    assert bool(dangling(text.format(fact=f"F{number}", target=f"f{number}", number=number), labels)) is found
