"""The newest scores of each label set: its sessions, its versions, an agent's state."""
