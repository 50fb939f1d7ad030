"""Scripted LangChain models and agents, and every way to run a Runnable."""

from functools import reduce
from operator import add

from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from tests.chains.conftest import ANSWER, QUESTION

ASKED = {"messages": [("user", QUESTION)]}
USAGE = {"input_tokens": 3, "output_tokens": 5, "total_tokens": 8}
WAYS = ["invoke", "ainvoke", "batch", "abatch", "stream", "astream"]


class ScriptedModel(GenericFakeChatModel):
    """Gives its answers in turn; binding tools makes a new Runnable, as real models do."""

    def bind_tools(self, tools, **kwargs):
        return self.bind(tools=tools)


def model(*answers):
    """A chat model that gives the answers in turn, word by word when streamed."""
    messages = [
        answer if isinstance(answer, AIMessage) else AIMessage(content=answer, usage_metadata=USAGE)
        for answer in answers or [ANSWER]
    ]
    return ScriptedModel(messages=iter(messages))


def agent(*answers, middleware=(), tools=(), **options):
    return create_agent(model(*answers), list(tools), middleware=list(middleware), **options)


async def run(runnable, value=QUESTION, way="invoke", config=None):
    """The output of a Runnable; the pieces of a stream are added up."""
    match way:
        case "invoke":
            return runnable.invoke(value, config)
        case "ainvoke":
            return await runnable.ainvoke(value, config)
        case "batch":
            return runnable.batch([value], config)[0]
        case "abatch":
            return (await runnable.abatch([value], config))[0]
        case "stream":
            first, *rest = runnable.stream(value, config)
        case _:
            first, *rest = [piece async for piece in runnable.astream(value, config)]
    return reduce(add, rest, first)


def verdict(message):
    return message.response_metadata["guardrail"]
