"""Evaluator workers: the port that rooms call, its adapters, and what runs inside a worker."""
