"""Where the log records and spans of agents without usable traces belong: which session, which turn."""
