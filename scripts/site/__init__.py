"""The site of docs/: what is written by hand, and pages that are made of data and recordings when it is built."""
