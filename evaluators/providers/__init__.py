"""The only places that import embedding and model libraries, lazily."""
