"""How configuration is loaded, checked and shown; the tree itself is collector/config.py."""
