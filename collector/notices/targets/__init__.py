"""Who is told: one file for each kind of target."""
