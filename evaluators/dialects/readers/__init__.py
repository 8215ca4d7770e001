"""One file per dialect: the declared object, and how its spans are read."""
