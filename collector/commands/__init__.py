"""One file per command, each with `register(app)`."""
