"""How Sphinx builds the site: `make docs`. Theme and fonts are local, nothing is fetched, and a warning is an error."""

project = "Spanwise"
project_copyright = "2026, the Spanwise authors. Apache License 2.0"
extensions = ["myst_parser"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "Spanwise"
html_show_sourcelink = False
html_copy_source = False
# Blocks of PromQL, and of JSON with `...` in it, are in no language that the highlighter knows.
suppress_warnings = ["misc.highlighting_failure"]
