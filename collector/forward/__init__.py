"""What was taken, passed on to the user's own backend."""
