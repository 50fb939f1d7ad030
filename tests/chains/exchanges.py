"""Guarded exchanges without a server: a request, and what leaves of a reply or of a stream."""

import json

from chains.openai_exchange import Exchange
from chains.openai_request import GuardSettings
from chains.openai_wire import Endpoint, Reply
from tests.chains.conftest import QUESTION

CHAT, RESPONSES = Endpoint
TRUE = "Mary Shelley was a writer."
ASKED = {
    CHAT: {"model": "m", "messages": [{"role": "user", "content": QUESTION}]},
    RESPONSES: {"model": "m", "input": QUESTION},
}
JSON_FORMAT = {
    CHAT: {"response_format": {"type": "json_object"}},
    RESPONSES: {"text": {"format": {"type": "json_object"}}},
}
PLACE = {"item_id": "m", "output_index": 0, "content_index": 0}


def tools(*names):
    """Tools of a request, in the form of either endpoint."""
    return {
        "tools": [{"type": "function", "name": name, "function": {"name": name}} for name in names]
    }


def choice(said, **fields):
    """A choice with a message, given as its text or its fields."""
    said = {"content": said} if isinstance(said, str) else said
    message = {"role": "assistant", **said}
    return {"index": 0, "finish_reason": "stop", "message": message} | fields


def completion(*said, **fields):
    """A chat completion of choices, each given as its text or the fields of its message."""
    return {"id": "1", "choices": [choice(one) for one in said]} | fields


def message(*texts):
    """A message of a response, with a part for each text."""
    parts = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {"type": "message", "id": "m", "role": "assistant", "content": parts}


def response(*items, **fields):
    """A response of items, each given as the text of a message or as the item."""
    output = [message(item) if isinstance(item, str) else item for item in items]
    return {"id": "r", "object": "response", "status": "completed", "output": output} | fields


def reply_of(endpoint, text):
    """A whole reply that says one thing."""
    return completion(text) if endpoint is CHAT else response(text)


def chunk(*, index=0, ended=None, **delta):
    return {"choices": [{"index": index, "delta": delta, "finish_reason": ended}]}


def delta(text, kind="output_text"):
    return {"type": f"response.{kind}.delta", **PLACE, "delta": text}


def completed(*items, **fields):
    return {"type": "response.completed", "response": response(*items, **fields)}


def pieces_of(endpoint, *texts):
    """The events of a stream that says something in pieces."""
    if endpoint is CHAT:
        return [*(chunk(content=text) for text in texts), chunk(ended="stop")]
    done = {"type": "response.output_text.done", **PLACE}
    return [*map(delta, texts), done, completed("".join(texts))]


def exchange(guard, endpoint, asked=(), **settings):
    """An exchange; ``asked`` is added to a plain request."""
    guarding = GuardSettings(guard=guard, **settings)
    return Exchange(guarding, endpoint, ASKED[endpoint] | dict(asked))


def as_reply(body):
    return Reply(200, (), json.dumps(body).encode())


async def guarded(guard, endpoint, asked, reply, **settings):
    """A guarded reply: its body, and the verdicts."""
    found = await exchange(guard, endpoint, asked, **settings).judge(as_reply(reply))
    return json.loads(found.reply.body), found.answers


async def judged(guard, endpoint, asked, reply, **settings):
    return json.dumps((await guarded(guard, endpoint, asked, reply, **settings))[0])


def written(event):
    return f"data: {json.dumps(event)}\n\n".encode()


async def events_of(guard, endpoint, asked, *events, **settings):
    """The events of a stream, without the error that ends one without an end, and the stream."""
    stream = exchange(guard, endpoint, {**dict(asked), "stream": True}, **settings).stream()
    out = b"".join([await stream.feed(written(event)) for event in events])
    out += await stream.finish() if stream.whole else b""
    lines = [line.removeprefix("data: ") for line in out.decode().splitlines() if "data: {" in line]
    return [json.loads(line) for line in lines], stream


async def streamed(guard, endpoint, asked, *events, **settings):
    return json.dumps((await events_of(guard, endpoint, asked, *events, **settings))[0])
