"""A model that says what it was told to say, for the SDK's real Runner; and the stories that are run with it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx2
from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    OutputGuardrailTripwireTriggered,
    Runner,
    RunState,
    function_tool,
    input_guardrail,
    output_guardrail,
)
from agents.items import ModelResponse
from agents.models.interface import Model
from agents.usage import Usage
from openai import BadRequestError
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)


def says(text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(text=text, type="output_text", annotations=[], logprobs=[])
    return ResponseOutputMessage(id="msg_1", type="message", role="assistant", status="completed", content=[content])


def calls(name: str, call_id: str, **arguments: Any) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        type="function_call", id=f"fc_{call_id}", call_id=call_id, name=name, arguments=json.dumps(arguments)
    )


class ScriptedModel(Model):
    """Answers with `turns`, one after the other; an exception among them is raised. `inputs`: what it was given."""

    def __init__(self, *turns: Sequence[Any] | Exception) -> None:
        self.turns = list(turns)
        self.inputs: list[Any] = []

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        self.inputs.append(kwargs["input"] if "input" in kwargs else args[1])
        turn = self.turns.pop(0)
        if isinstance(turn, Exception):
            raise turn
        return ModelResponse(output=list(turn), usage=Usage(), response_id=None)

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        reply = await self.get_response(*args, **kwargs)
        response = Response(
            id="resp_1", created_at=0, model="scripted", object="response", output=reply.output,
            tool_choice="none", tools=[], parallel_tool_calls=False,
        )  # fmt: skip
        yield ResponseCompletedEvent(type="response.completed", response=response, sequence_number=0)


def conversation_locked() -> BadRequestError:
    response = httpx2.Response(400, request=httpx2.Request("POST", "http://127.0.0.1/v1/responses"))
    return BadRequestError("locked", response=response, body={"code": "conversation_locked"})


@function_tool
def weather(city: str) -> str:
    return f"rain in {city}"


@function_tool(needs_approval=True)
def refund(order: str) -> str:
    return f"refunded {order}"


@input_guardrail
async def no_secrets(context: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered="secret" in str(given))


@output_guardrail
async def polite(context: Any, agent: Any, output: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered="rude" in str(output))


async def two_turns(session: Any) -> None:
    agent = Agent("a", model=ScriptedModel([says("Hello.")], [says("Bye.")]))
    await Runner.run(agent, "Hi", session=session)
    await Runner.run(agent, "Thanks", session=session)


async def streamed(session: Any) -> None:
    model = ScriptedModel([calls("weather", "c1", city="Rome")], [says("Rain.")])
    result = Runner.run_streamed(Agent("a", model=model, tools=[weather]), "Weather?", session=session)
    async for _ in result.stream_events():
        pass


async def tools(session: Any) -> None:
    model = ScriptedModel([calls("weather", f"c{n}", city=f"city {n}") for n in range(3)], [says("Rain everywhere.")])
    await Runner.run(Agent("a", model=model, tools=[weather]), "Weather?", session=session)


async def many_tools(session: Any) -> None:
    """One turn of 50 items: several requests."""
    model = ScriptedModel([calls("weather", f"c{n}", city=f"city {n}") for n in range(25)], [says("Rain everywhere.")])
    await Runner.run(Agent("a", model=model, tools=[weather]), "Weather?", session=session)


async def handoff(session: Any) -> None:
    other = Agent("billing", model=ScriptedModel([says("Billing here.")]))
    model = ScriptedModel([calls("transfer_to_billing", "h1")])
    await Runner.run(Agent("front", model=model, handoffs=[other]), "My bill", session=session)


def refunding(*turns: Any) -> Agent:
    return Agent("a", model=ScriptedModel(*turns), tools=[refund, weather], output_guardrails=[polite])


async def interrupted(session: Any) -> None:
    """Interrupted for an approval, stored as text, and resumed."""
    calling = [calls("refund", "r1", order="7"), calls("weather", "c1", city="Rome")]
    agent = refunding(calling, [says("Done.")])
    parked = await Runner.run(agent, "Refund 7", session=session)
    state = await RunState.from_string(agent, parked.to_state().to_string())
    state.approve(state.get_interruptions()[0])
    await Runner.run(agent, state, session=session)


async def rejected(session: Any) -> None:
    agent = refunding([calls("refund", "r1", order="7")], [says("Then not.")])
    parked = await Runner.run(agent, "Refund 7", session=session)
    state = parked.to_state()
    state.reject(state.get_interruptions()[0])
    await Runner.run(agent, state, session=session)


async def input_tripped(session: Any) -> None:
    agent = Agent("a", model=ScriptedModel([says("Hello.")]), input_guardrails=[no_secrets])
    try:
        await Runner.run(agent, "my secret", session=session)
    except InputGuardrailTripwireTriggered:
        return
    raise AssertionError("the guardrail did not trip")


async def output_tripped(session: Any) -> None:
    agent = Agent("a", model=ScriptedModel([says("Hello.")], [says("rude")]), output_guardrails=[polite])
    await Runner.run(agent, "Hi", session=session)
    try:
        await Runner.run(agent, "Again", session=session)
    except OutputGuardrailTripwireTriggered:
        return
    raise AssertionError("the guardrail did not trip")


async def retried(session: Any) -> None:
    """The model refuses once because the conversation is busy; the Runner retries."""
    agent = Agent("a", model=ScriptedModel(conversation_locked(), [says("Hello.")], [says("Bye.")]))
    await Runner.run(agent, "Hi", session=session)
    await Runner.run(agent, "Thanks", session=session)


STORIES = {
    story.__name__: story
    for story in (
        two_turns, streamed, tools, many_tools, handoff, interrupted, rejected, input_tripped, output_tripped, retried,
    )
}  # fmt: skip
