"""Traces become outcomes, outcomes become signals: the open sessions and their sliding windows."""
