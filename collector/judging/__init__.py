"""The judging room: its own reader of `traces`, verdicts into the log. Models are asked in a process of its own."""
