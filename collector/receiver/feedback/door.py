"""`POST /v1/feedback` and `/v1/evaluations`: what is said of a trace or a session. JSON in, JSON out.

The type of the body is not looked at: `curl -d` and a page's `sendBeacon` name another one than JSON.
"""

import json

from collector.receiver.answers import OK, ReceiverReply
from collector.receiver.feedback.found import FoundFeedback

EVALUATIONS = "/v1/evaluations"
PATHS = ("/v1/feedback", EVALUATIONS)


def body(answer: ReceiverReply, found: FoundFeedback) -> str:
    """Of the response: 200 once everything that was accepted is durable, else an error as `/api/v1` gives it."""
    rejected = [{"index": at, "message": why} for at, why in found.rejected]
    if answer is OK:
        return json.dumps({"accepted": found.results["accepted"], "rejected": rejected})
    error = {"type": answer.code.name.lower(), "message": answer.message}
    return json.dumps({"error": error, "rejected": rejected} if rejected else {"error": error})
