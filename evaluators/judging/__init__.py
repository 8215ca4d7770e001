"""What a judge is asked, how its answer is read, and what becomes of it."""
