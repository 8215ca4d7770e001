"""What stands in each topic, and the signal that Spanwise publishes."""
