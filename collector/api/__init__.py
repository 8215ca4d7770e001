"""The page and /api/v1 over a bounded index."""
