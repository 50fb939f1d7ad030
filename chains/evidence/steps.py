"""Evidence inside a LangChain chain: what its steps hand to each other while it runs."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.callbacks.base import BaseCallbackManager
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import patch_config

from chains.evidence.paths import value_at

__all__ = ["StepsSeen"]


class StepsSeen(BaseCallbackHandler):
    """Sees one run of a chain from inside: its retrievers' documents, and a value of its steps.

    In ``{"context": retriever, "question": …} | prompt | model`` the context stands neither in the
    chain's input nor in its output. One run has one such handler, so that runs side by side do not
    mix.

    Args:
        path: Key or path of the value to keep, in the output of any step; None for none.

    Attributes:
        documents: What the chain's retrievers found, in the order in which they came back; None
            where none was asked.
        value: What stood at the path in the last step that had it, and whether any had.
    """

    run_inline = True  # what a step hands on is seen before the next one begins

    def __init__(self, path: str | None = None) -> None:
        self.documents: tuple[Document, ...] | None = None
        self.value: tuple[object, bool] = (None, False)
        self._path = path
        self._lock = threading.Lock()

    def watching(self, config: RunnableConfig) -> RunnableConfig:
        """The config of the run, with this handler beside the others."""
        callbacks = config.get("callbacks")
        assert isinstance(callbacks, BaseCallbackManager)  # of a run that has begun
        seeing = callbacks.copy()
        seeing.add_handler(self, inherit=True)
        return patch_config(config, callbacks=seeing)

    def on_retriever_end(
        self,
        documents: Sequence[Document],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: object,
    ) -> None:
        """Keep what a retriever found."""
        with self._lock:
            self.documents = (*(self.documents or ()), *documents)

    def on_chain_end(
        self,
        outputs: object,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: object,
    ) -> None:
        """Keep what a step hands on at the path."""
        if self._path is None or not isinstance(outputs, Mapping):
            return
        found = value_at(outputs, self._path)
        if found[1]:
            self.value = found
