"""Sphinx: pages in Markdown (MyST), the reference from numpydoc docstrings. Nothing is fetched while building."""

import contrapca

project = "contrapca"
author = "The contrapca developers"
release = version = contrapca.__version__
copyright = author

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
exclude_patterns = ["_build"]

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3  # links such as math.md#how-strong-a-contrast

default_role = "py:obj"
autodoc_typehints = "none"  # the docstrings name types and shapes
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "inherited-members": True}
numpydoc_show_class_members = False  # autodoc lists them in full

html_theme = "furo"
html_title = f"contrapca {version}"
html_static_path = ["_static"]
html_css_files = ["tables.css"]


def _is_not_ours(app, what, name, member, skip, options):
    """Leave out what classes inherit from elsewhere (get_params, set_output, with_traceback, ...)."""
    function = getattr(member, "fget", member)
    return True if not (getattr(function, "__module__", None) or "").startswith("contrapca") else None


def setup(app):
    app.connect("autodoc-skip-member", _is_not_ours)
