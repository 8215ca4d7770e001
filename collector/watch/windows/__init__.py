"""The newest scores of each label set: its sessions, its versions, how an agent stands."""
