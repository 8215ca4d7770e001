from aiokafka.protocol.api import Response

class DescribeGroupsResponse_v3(Response): ...  # noqa: N801

class CreateAclsRequest:
    def __init__(
        self,
        resource_type: int,
        resource_name: str,
        resource_pattern_type_filter: int,
        principal: str,
        host: str,
        operation: int,
        permission_type: int,
    ) -> None: ...
