"""The generated files of helm/."""
