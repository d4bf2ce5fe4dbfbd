"""The documentation as a site: pages of docs/ by MyST, comments of headers by Breathe, docstrings by autodoc.

scripts/make_site.py copies the pages next to this file, adds the reference, and builds all of it in strict mode.
"""

import os
import re
import sys

project = "Haloscope"
author = "the contributors of Haloscope"
html_title = "Haloscope"
html_theme = "furo"
html_show_copyright = False
sys.path.insert(0, os.environ["HALOSCOPE_PYTHON"])

extensions = ["myst_parser", "breathe", "sphinx.ext.autodoc"]
root_doc = "index"
exclude_patterns = ["docs/site"]
myst_heading_anchors = 4
highlight_language = "text"

breathe_projects = {name: os.environ["HALOSCOPE_XML"] + f"/{name}/xml" for name in ("cpp", "c")}
breathe_default_project = "cpp"
breathe_domain_by_extension = {"h": "c"}
# Each header of a namespace declares it; a C struct and its typedef have one name; the output of commands has headings.
suppress_warnings = ["duplicate_declaration.cpp", "duplicate_declaration.c", "myst.header"]

default_role = "code"
autoclass_content = "both"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
PARAMETERS = re.compile(r"^((?:\w+, )*\w+): ")
PARAGRAPH = re.compile(r"(?:\w+, )*\w+: |Raises ")  # begins with an argument, or with the errors


def split_parameters(app, what, name, found, options, lines):
    """Begin a paragraph at each line "NAME: ..." or "Raises ..." of a docstring, whose next lines may be indented."""
    text, lines[:] = list(lines), []
    for line in text:
        if PARAGRAPH.match(line):
            lines.append("")
        lines.append(PARAMETERS.sub(r"``\1``: ", line.strip()))


def setup(app):
    """Read the docstrings of the package as it writes them."""
    app.connect("autodoc-process-docstring", split_parameters)
