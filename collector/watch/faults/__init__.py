"""Fault watches: which tool, which model calls, fail more often than they did."""
