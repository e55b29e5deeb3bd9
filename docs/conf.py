"""Sphinx: pages in Markdown (MyST) and notebooks, the reference from numpydoc docstrings.

Readers fetch nothing: formulas become MathML, which browsers draw themselves in a font of ours. The report on the front
page is made here. With a network, names of other libraries become links to their documentation; without one, text.
"""

import shutil
import urllib.request
from pathlib import Path

import numpy as np
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from numpydoc.xref import DEFAULT_LINKS
from sphinx import addnodes

import contrapca

project = "contrapca"
author = "The contrapca developers"
release = version = contrapca.__version__
copyright = author

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.intersphinx", "numpydoc"]
exclude_patterns = ["_build", "jupyter_execute"]
templates_path = ["_templates"]
nb_execution_mode = "off"  # `python tests/notebooks.py` runs notebooks, and compares what they print with what is shown

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3  # links such as math.md#how-strong-a-contrast

smartquotes = False  # W' is a transpose
html_math_renderer = "mathml"

default_role = "py:obj"
autodoc_typehints = "none"  # the docstrings name types and shapes
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "inherited-members": True}
numpydoc_show_class_members = False  # autodoc lists them in full
numpydoc_xref_param_type = True  # types of parameters become links, their other words stay words
numpydoc_xref_ignore = "all"
numpydoc_xref_aliases = {
    # numpydoc's own targets are labels and terms of other sites, which are errors where those cannot be reached.
    **{name: name for name, target in DEFAULT_LINKS.items() if target.startswith(":")},
    **{name: f"contrapca.{name}" for name in ("Moments", "Study")},
    "AnnData": "anndata.AnnData",
    "Axes": "matplotlib.axes.Axes",
    "DataFrame": "pandas.DataFrame",
    "Figure": "matplotlib.figure.Figure",
    "ndarray": "numpy.ndarray",
}

# Pages of the reference are made anew, so that none is left of a name that is gone.
shutil.rmtree(Path(__file__).parent / "api" / "generated", ignore_errors=True)


def _reachable(inventories):
    """The inventories, or none of them without a network: a build must not depend on it."""
    try:
        for address, _ in inventories.values():
            urllib.request.urlopen(address + "objects.inv", timeout=3).close()
    except OSError:
        return {}
    return inventories


intersphinx_mapping = _reachable(
    {
        "python": ("https://docs.python.org/3/", None),
        "numpy": ("https://numpy.org/doc/stable/", None),
        "scipy": ("https://docs.scipy.org/doc/scipy/", None),
        "sklearn": ("https://scikit-learn.org/stable/", None),
        "pandas": ("https://pandas.pydata.org/docs/", None),
        "matplotlib": ("https://matplotlib.org/stable/", None),
        "anndata": ("https://anndata.readthedocs.io/en/stable/", None),
    }
)

html_theme = "furo"
html_title = f"contrapca {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["copy.js"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"


def _is_not_ours(app, what, name, member, skip, options):
    """Leave out what classes inherit from elsewhere (get_params, set_output, with_traceback, ...)."""
    function = getattr(member, "fget", member)
    return True if not (getattr(function, "__module__", None) or "").startswith("contrapca") else None


def _hide_private_modules(app, doctree):
    """Types that calls return have no public path: show them without the module that they are written in."""
    for name in list(doctree.findall(addnodes.desc_addname)):
        if "._" in name.astext():
            name.parent.remove(name)


def _visit_math(translator, node):
    """Write a formula as MathML, in a line of its own or in the text."""
    is_block = isinstance(node, nodes.math_block)
    formula = tex2mathml(node.astext(), as_block=is_block)
    translator.body.append(f'<div class="math">{formula}</div>' if is_block else formula)
    raise nodes.SkipNode


def _write_report(app, error):
    """The live report of the front page: the data of `contrapca demo`."""
    if error is None and app.builder.name == "html":
        data = contrapca.datasets.make_hidden_clusters(random_state=0)
        labels = np.array([f"case subgroup {label + 1}" for label in data.labels])
        contrapca.report(
            contrapca.Study(data.foreground, background=data.background, labels=labels, label_name="subgroup"),
            contrapca.ContraPCA(n_components=2),
            output=Path(app.outdir) / "_static" / "report.html",
            title="Four hidden subgroups",
        )


def setup(app):
    app.connect("build-finished", _write_report)
    app.connect("autodoc-skip-member", _is_not_ours)
    app.connect("doctree-read", _hide_private_modules)
    app.add_html_math_renderer("mathml", (_visit_math, None), (_visit_math, None))
