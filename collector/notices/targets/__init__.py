"""Who is notified: one file for each kind of target."""
