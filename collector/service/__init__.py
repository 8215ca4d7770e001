"""The service: what runs in this process and what it is given; and the service without sockets, over recordings."""
