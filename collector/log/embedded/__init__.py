"""What the logs that keep their own records share: disk and memory."""
