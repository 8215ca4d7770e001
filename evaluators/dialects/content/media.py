"""Parts of a message that are not text: pictures, sound, video, files. Their bytes are never read as words."""

from evaluators.dialects.decoding.values import string
from evaluators.model import JSON

_MODALITIES = ("image", "audio", "video")
TYPES = frozenset(
    {
        *(f"{way}{what}" for what in _MODALITIES for way in ("", "input_", "output_")),
        *(f"{what}{end}" for what in _MODALITIES for end in ("_url", "-url")),
        *("blob", "uri", "file", "input_file", "binary", "media", "document-url", "document_url"),
    }
)
"""The types of such parts: the conventions', OpenAI's, Anthropic's, pydantic-ai's, LangChain's."""
_KEYS = ("inline_data", "inlineData", "file_data", "fileData")  # gemini's, which have no type


def word_of(item: dict[str, JSON], kind: str | None) -> str | None:
    """The text for the part where its message has none: `[image]`, `[file]`; None: it is not one of these."""
    if kind not in TYPES:
        inner = next((item[key] for key in _KEYS if isinstance(item.get(key), dict)), None)
        return None if inner is None else _word(inner)
    return _word({"modality": kind.partition("_")[2] if "put_" in kind else kind, **item})


def _word(item: dict[str, JSON]) -> str:
    stated = (item.get(key) for key in ("modality", "mime_type", "mimeType", "media_type"))
    found = (what for text in map(string, stated) for what in _MODALITIES if what in (text or ""))
    return f"[{next(found, 'file')}]"
