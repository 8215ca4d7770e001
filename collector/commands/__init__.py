"""The commands, one file each; collector/cli.py puts them together."""
