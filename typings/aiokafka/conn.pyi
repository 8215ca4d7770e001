import ssl

class AIOKafkaConnection:
    def close(self) -> object: ...

async def create_conn(
    host: str,
    port: int,
    *,
    request_timeout_ms: int = ...,
    ssl_context: ssl.SSLContext | None = ...,
    security_protocol: str = ...,
    sasl_mechanism: str | None = ...,
    sasl_plain_username: str | None = ...,
    sasl_plain_password: str | None = ...,
) -> AIOKafkaConnection: ...
