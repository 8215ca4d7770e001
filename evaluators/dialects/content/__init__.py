"""Messages, tool values and texts, in every provider's spelling."""
