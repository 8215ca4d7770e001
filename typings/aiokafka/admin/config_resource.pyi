from enum import IntEnum

class ConfigResourceType(IntEnum):
    TOPIC = 2

class ConfigResource:
    def __init__(self, resource_type: ConfigResourceType, name: str) -> None: ...
