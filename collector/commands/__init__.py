"""One file per command, each with its `command`: a function whose docstring is its help, or a group of them."""
