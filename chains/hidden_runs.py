"""Runs whose tokens no consumer of a stream sees, since they are not judged yet."""

from __future__ import annotations

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.callbacks.base import BaseCallbackManager
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import patch_config
from langchain_core.tracers._streaming import _StreamingCallbackHandler, _V2StreamingCallbackHandler

__all__ = ["NO_STREAM_TAG", "hidden", "streams_tokens"]

NO_STREAM_TAG = "nostream"
"""LangGraph does not stream the tokens of a model that runs under this tag."""


def hidden(config: RunnableConfig, callbacks: BaseCallbackManager) -> RunnableConfig:
    """The config for the inner run: all callbacks but those that stream tokens to a consumer.

    The ``nostream`` tag asks the same of stream modes that look at tags.
    """
    quiet = callbacks.copy()
    for handler in [*quiet.handlers, *quiet.inheritable_handlers]:
        if streams_tokens(handler):
            quiet.remove_handler(handler)
    quiet.add_tags([NO_STREAM_TAG], inherit=True)
    return patch_config(config, callbacks=quiet)


def streams_tokens(handler: BaseCallbackHandler) -> bool:
    """Whether a handler hands what it sees to the consumer of a stream."""
    return isinstance(handler, _StreamingCallbackHandler | _V2StreamingCallbackHandler)
