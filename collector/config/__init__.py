"""The configuration: its tree, where values come from, and the plan of evaluators made of it."""
