"""What is watched of agents: windows, versions, drift, faults, task runs, runaways, ranks; kept in topic `windows`."""
