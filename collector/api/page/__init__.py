"""The page: rendered on the server, nothing loaded from elsewhere."""
