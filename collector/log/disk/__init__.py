"""The embedded log on disk: one LMDB file."""
