from typing import Any

class RangePartitionAssignor:
    @classmethod
    def assign(cls, cluster: Any, members: Any) -> Any: ...
