"""OTLP over HTTP/1.1: a path per signal, two encodings, every answer in the encoding of the request; and its server.

Feedback and scores come and are answered as JSON. The type of their body is not looked at: `curl -d` and a page's
`sendBeacon` name another one.
"""

import asyncio
import json
from asyncio import Task
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from collector.base.bounded_protocol import DEFAULT, Limits
from collector.base.families import RuntimeFamilies
from collector.base.http_server import BearerTokens, GuestServer
from collector.base.net import connections, is_local_origin, is_loopback, is_this_machine
from collector.base.watch import ends
from collector.otlp.json import to_protobuf
from collector.otlp.signal import DroppedSignal, OtlpSignal
from collector.receiver.answers import (
    OK,
    Code,
    HungUp,
    ReceiverReply,
    bound,
    status,
    unauthenticated,
)
from collector.receiver.feedback.found import FoundFeedback
from collector.receiver.inflate import BY_NAME, Decode, Inflate, protobuf
from collector.receiver.intake import Intake
from collector.receiver.tls import Tls
from collector.receiver.wrong_door import WrongDoor

KEY = "receiver.http"
PROTOBUF = "application/x-protobuf"
PROTOBUFS = (PROTOBUF, "application/protobuf")
JSON = "application/json"
EVALUATIONS = "/v1/evaluations"
FEEDBACK_PATHS = ("/v1/feedback", EVALUATIONS)
MAX_AGE = 180.0
"""Seconds after which a connection ends with its next answer, as those of gRPC do: so senders find new processes."""
PREFLIGHT_AGE = 7200  # seconds that a browser keeps the answer to its preflight request: what Chromium takes at most
_FOREIGN = ReceiverReply(
    code=Code.PERMISSION_DENIED,
    message="only pages and names of this machine may send here;"
    " set receiver.bearer_tokens to allow others, or receiver.http.cors to allow a page",
)


@dataclass(slots=True, kw_only=True)
class HttpApp:
    intake: Intake
    bearer: BearerTokens
    wrong_door: WrongDoor
    paths: Mapping[str, OtlpSignal | DroppedSignal]
    host: str
    origins: Sequence[str] = ()  # web pages that may send, beside those of this machine; "*" is all
    is_leaving: bool = False
    """Whether each answer ends its connection, so that the sender's next request finds another process."""

    def __post_init__(self) -> None:
        self.paths = {_plain(path): signal for path, signal in self.paths.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        reply = await self._serve(Request(scope, receive))
        if self.is_leaving:
            reply.headers["connection"] = "close"
        await reply(scope, receive, send)

    def http2(self) -> str:
        return self.wrong_door.http2()

    async def _serve(self, request: Request) -> Response:
        media, path = _media(request), _plain(request.url.path)
        signal = self.paths.get(path)
        if signal is None and path not in FEEDBACK_PATHS:
            return _error(self.wrong_door.no_path(request.url.path), media)
        if request.method != "POST":
            return _error(self.wrong_door.no_post(request.method), media)
        if signal is None:
            return await self._feedback(request, scores=path == EVALUATIONS)
        return await self._answered(request, signal, media)

    async def _answered(
        self, request: Request, signal: OtlpSignal | DroppedSignal, media: str | None
    ) -> Response:
        sender = self._sender(request)
        denied = sender if isinstance(sender, ReceiverReply) else None
        if isinstance(signal, DroppedSignal):
            answer = self.intake.drop(signal, "http", denied)
            return _error(answer, media) if denied else _reply(signal.response(), answer, media)
        if isinstance(sender, ReceiverReply):
            return _error(self.intake.deny(signal, "http", sender), media)
        encoding = request.headers.get("content-encoding", "").strip().lower()
        inflate = BY_NAME.get(encoding)
        if media is None or inflate is None:
            sent = request.headers.get("content-type", "")
            return _error(self.wrong_door.unsupported(sent, encoding), media)
        answer = await self.intake.take(
            _chunks(request),
            sender=sender,
            signal=signal,
            transport="http",
            decode=_decoder(inflate, media, signal),
        )
        if answer.code is not OK.code:
            return _error(answer, media)
        return _reply(signal.response(answer.rejected, answer.message), answer, media)

    async def _feedback(self, request: Request, *, scores: bool) -> Response:
        encoding = request.headers.get("content-encoding", "").strip().lower()
        inflate = BY_NAME.get(encoding)
        if inflate is None:
            answer, found = self.wrong_door.unsupported("", encoding), FoundFeedback()
        else:
            answer, found = await self.intake.take_feedback(
                _chunks(request), sender=self._sender(request), inflate=inflate, scores=scores
            )
        return Response(
            _feedback_body(answer, found),
            status_code=answer.http_status,
            headers=_headers(answer),
            media_type=JSON,
        )

    def _sender(self, request: Request) -> str | ReceiverReply:
        """Who sends, or the answer to whom may not."""
        headers = request.headers
        address = "" if request.client is None else request.client.host
        sender = self.bearer.sender(headers.get("authorization"), address)
        if sender is None:
            return unauthenticated()
        return sender if self.bearer.required else self._foreign(headers) or sender

    def _foreign(self, headers: Headers) -> ReceiverReply | None:
        origin = headers.get("origin", "http://localhost")
        if not is_local_origin(origin) and origin not in self.origins and "*" not in self.origins:
            return _FOREIGN
        host = headers.get("host", self.host)
        is_rebound = is_loopback(self.host) and not is_this_machine(host, self.host)
        return _FOREIGN if is_rebound else None


async def _chunks(request: Request) -> AsyncGenerator[bytes]:
    """The body as it comes. Raises HungUp: the rest will not come."""
    try:
        async for chunk in request.stream():
            yield chunk
    except ClientDisconnect as error:
        raise HungUp("the sender hung up before its body had arrived") from error


def _decoder(inflate: Inflate, media: str, signal: OtlpSignal) -> Decode:
    if media in PROTOBUFS:
        return protobuf(inflate)
    return Decode(inflate, partial(to_protobuf, message=signal.request))


def _plain(path: str) -> str:
    """The path without slashes that are doubled or at its end: endpoints are put together by hand."""
    return "/" + "/".join(filter(None, path.split("/")))


def _media(request: Request) -> str | None:
    """The encoding of the request; None: neither protobuf nor JSON."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return media if media in (*PROTOBUFS, JSON) else None


def _error(answer: ReceiverReply, media: str | None) -> Response:
    return _reply(status(answer), answer, media)


def _reply(message: Message, answer: ReceiverReply, media: str | None) -> Response:
    body = MessageToJson(message, indent=None).encode() if media == JSON else None
    return Response(
        message.SerializeToString() if body is None else body,
        status_code=answer.http_status,
        headers=_headers(answer),
        media_type=media or PROTOBUF,
    )


def _feedback_body(answer: ReceiverReply, found: FoundFeedback) -> str:
    """200 once everything that was accepted is durable, else an error as `/api/v1` gives it."""
    rejected = [{"index": at, "message": why} for at, why in found.rejected]
    if answer is OK:
        return json.dumps({"accepted": found.results["accepted"], "rejected": rejected})
    error = {"type": answer.code.name.lower(), "message": answer.message}
    return json.dumps({"error": error, "rejected": rejected} if rejected else {"error": error})


def _headers(answer: ReceiverReply) -> dict[str, str]:
    match answer.http_status:
        case 405:
            return {"allow": "POST"}
        case 401:
            return {"www-authenticate": "Bearer"}
        case 503:
            return {"retry-after": str(answer.retry_after or 1)}
        case _:
            return {}


def _with_cors_preflight(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """The application as browsers ask for it before a page of another origin may send."""
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=origins,
        allow_methods=["POST"],
        allow_headers=["*"],
        max_age=PREFLIGHT_AGE,
    )


@dataclass(slots=True, kw_only=True)
class HttpServer:
    app: HttpApp
    host: str
    port: int  # once it is bound, the real one
    tls: Tls | None
    families: RuntimeFamilies
    limits: Limits | None = None
    origins: Sequence[str] = ()
    """Web pages whose scripts may read the answers; none of them may otherwise send more than a form."""
    _server: GuestServer | None = None
    _task: Task[None] | None = None

    async def start(self) -> None:
        """Bind and serve. Raises ConfigError: the port cannot be had."""
        sock = bound(KEY, self.host, self.port)
        self.port = sock.getsockname()[1]
        most = connections(DEFAULT.max_connections, share=1 / 4)
        self._server = GuestServer(
            _with_cors_preflight(self.app, self.origins),
            limits=self.limits or Limits(max_connections=most, max_age=MAX_AGE),
            closed=self.families.closed("http"),
            tls=self.tls and self.tls.context,
            http2=self.app.http2,
        )
        self._task = asyncio.create_task(self._server.serve([sock]), name="receiver-http")
        await self._server.ready.wait()

    async def watch(self) -> None:
        if self._task is not None:
            await ends([self._task])

    def leave(self) -> None:
        """Serve on, but keep no connection: the port closes soon."""
        self.app.is_leaving = True

    async def stop(self, grace: float) -> None:
        if self._server is None or self._task is None:
            return
        self._server.stop(grace)
        await self._task
        self._server = self._task = None
