"""One file per dialect: what its spans say."""
