"""What was scored, to read: an index, `/api/v1`, the page, and the admin listener."""
