"""The checks: each is one property that a caller of the protocol relies on."""

from __future__ import annotations

import asyncio
import copy
from contextlib import suppress
from typing import Any

from .backend import Backend, Check, NotApplicable
from .items import messages, text, texts, together


async def empty(backend: Backend) -> None:
    """A session without history has no items, and nothing to pop."""
    session = backend.open("empty")
    assert await session.get_items() == []
    assert await session.get_items(limit=3) == []
    assert await session.pop_item() is None
    await session.clear_session()


async def order(backend: Backend) -> None:
    """Items come back in the order in which they were added, over several calls."""
    session = backend.open("order")
    for prefix in ("a", "b", "c"):
        await session.add_items(messages(3, prefix=prefix))
    expected = texts([*messages(3, prefix="a"), *messages(3, prefix="b"), *messages(3, prefix="c")])
    assert texts(await session.get_items()) == expected


async def many_items(backend: Backend) -> None:
    """One call takes any number of items, and reading brings all of them."""
    session = backend.open("many")
    await session.add_items(messages(230))
    assert texts(await session.get_items()) == texts(messages(230))


async def limits(backend: Backend) -> None:
    """A limit gives the newest items, the oldest of them first; more than there are gives all."""
    session = backend.open("limits")
    await session.add_items(messages(130))
    expected = texts(messages(130))
    for limit in (1, 2, 20, 21, 100, 101, 130, 500):
        assert texts(await session.get_items(limit=limit)) == expected[-limit:], limit


async def limit_zero(backend: Backend) -> None:
    """A limit of 0 gives nothing."""
    session = backend.open("zero")
    await session.add_items(messages(3))
    assert await session.get_items(limit=0) == []


async def limit_zero_is_free(backend: Backend) -> None:
    """A limit of 0 makes no request."""
    session = backend.open("free")
    before = backend.requests()
    assert await session.get_items(limit=0) == []
    assert backend.requests() == before


async def settings_limit(backend: Backend) -> None:
    """The limit in session_settings holds where the call gives none, and the call's own wins."""
    session = backend.open("settings", session_settings={"limit": 2})
    await session.add_items(messages(5))
    assert texts(await session.get_items()) == ["m3", "m4"]
    assert texts(await session.get_items(limit=4)) == ["m1", "m2", "m3", "m4"]


async def empty_add(backend: Backend) -> None:
    """Adding nothing changes nothing."""
    session = backend.open("nothing")
    await session.add_items([])
    await session.add_items(messages(1))
    await session.add_items([])
    assert texts(await session.get_items()) == ["m0"]


async def given_items_stay(backend: Backend) -> None:
    """The caller's items are not changed."""
    items: Any = [{"role": "user", "content": [{"type": "input_text", "text": "m"}]}, *messages(25)]
    before = copy.deepcopy(items)
    await backend.open("given").add_items(items)
    assert items == before


async def pop_is_last_in_first_out(backend: Backend) -> None:
    """Popping returns and removes the newest item, until there is none."""
    session = backend.open("pop")
    await session.add_items(messages(23))
    popped = [await session.pop_item() for _ in range(23)]
    assert texts(popped) == texts(messages(23))[::-1]
    assert await session.pop_item() is None
    assert await session.get_items() == []


async def pop_then_add(backend: Backend) -> None:
    """What is added after a pop follows what is left; the popped item can be put back."""
    session = backend.open("pop_add")
    await session.add_items(messages(3))
    popped = await session.pop_item()
    await session.add_items(messages(1, prefix="n"))
    await session.add_items([popped])
    assert texts(await session.get_items()) == ["m0", "m1", "n0", "m2"]


async def concurrent_pops(backend: Backend) -> None:
    """Pops at the same time, through two objects, never return the same item."""
    one = backend.open("pops")
    await one.add_items(messages(6))
    two = await backend.open_again("pops", one)
    _slow_down(backend)
    popped = await asyncio.gather(*(session.pop_item() for session in (one, two, one, two)))
    assert sorted(map(text, popped)) == ["m2", "m3", "m4", "m5"]
    assert texts(await one.get_items()) == ["m0", "m1"]


async def clear_and_reuse(backend: Backend) -> None:
    """A cleared session is empty and can be used again; clearing twice is no error."""
    session = backend.open("clear")
    await session.add_items(messages(25))
    await session.clear_session()
    await session.clear_session()
    assert await session.get_items() == []
    await session.add_items(messages(2, prefix="n"))
    assert texts(await session.get_items()) == ["n0", "n1"]


async def clear_elsewhere(backend: Backend) -> None:
    """A second object goes on after the first one cleared the session."""
    one = backend.open("elsewhere")
    await one.add_items(messages(2))
    two = await backend.open_again("elsewhere", one)
    assert len(await two.get_items()) == 2
    await one.clear_session()
    assert await two.get_items() == []
    await two.add_items(messages(1, prefix="n"))
    assert texts(await one.get_items()) == ["n0"]


async def clear_while_reading(backend: Backend) -> None:
    """Reading while another object clears gives the history from before, or none, and no error."""
    one = backend.open("race")
    await one.add_items(messages(105))
    two = await backend.open_again("race", one)
    _slow_down(backend)
    reads, _ = await asyncio.gather(asyncio.gather(*(two.get_items() for _ in range(3))), one.clear_session())
    for read in reads:
        assert texts(read) in ([], texts(messages(105)))


async def two_objects(backend: Backend) -> None:
    """Two objects for one session see the same history."""
    one = backend.open("shared")
    await one.add_items(messages(1, prefix="a"))
    two = await backend.open_again("shared", one)
    await two.add_items(messages(1, prefix="b"))
    assert texts(await one.get_items()) == texts(await two.get_items()) == ["a0", "b0"]


async def concurrent_first_writes(backend: Backend) -> None:
    """First writes at the same time, through objects for one name, end in one history."""
    sessions = [backend.open("first") for _ in range(4)]
    await asyncio.gather(*(session.add_items(messages(2, prefix=f"{n}-")) for n, session in enumerate(sessions)))
    history = texts(await sessions[0].get_items())
    assert sorted(history) == sorted(f"{n}-{index}" for n in range(4) for index in range(2))


async def long_writes_stay_together(backend: Backend) -> None:
    """The items of one call stay together, whoever else adds at the same time."""
    one = backend.open("together")
    await one.add_items(messages(1))
    two = await backend.open_again("together", one)
    batches = messages(45, prefix="a"), messages(45, prefix="b")
    _slow_down(backend)
    await asyncio.gather(one.add_items(batches[0]), two.add_items(batches[1]))
    history = texts(await one.get_items())
    assert all(together(texts(batch), history) for batch in batches)


async def lost_reply(backend: Backend) -> None:
    """A write to which the reply was lost can be repeated after the error, and is there once."""
    session = backend.open("lost")
    await session.add_items(messages(1, prefix="before"))
    backend.lose_replies(1)
    await _until_it_returns(session, messages(5))
    assert texts(await session.get_items()) == ["before0", *texts(messages(5))]


async def lost_replies_of_a_long_write(backend: Backend) -> None:
    """A long write to which every reply was lost once can be repeated after the error, and is there once."""
    session = backend.open("long")
    await session.add_items(messages(1, prefix="before"))
    backend.lose_replies(3)
    await _until_it_returns(session, messages(45))
    assert texts(await session.get_items()) == ["before0", *texts(messages(45))]


async def cancelled_write(backend: Backend) -> None:
    """A long write that was cancelled in its middle can be repeated, and is there once."""
    session = backend.open("cancelled")
    await session.add_items(messages(1, prefix="before"))
    backend.be_slow(0.1)
    adding = asyncio.create_task(session.add_items(messages(45)))
    await asyncio.sleep(0.15)
    adding.cancel()
    with suppress(asyncio.CancelledError):
        await adding
    backend.be_slow(0.0)
    await _until_it_returns(session, messages(45))
    assert texts(await session.get_items()) == ["before0", *texts(messages(45))]


def _slow_down(backend: Backend) -> None:
    """Have what happens at the same time overlap for certain, where there are requests that can."""
    with suppress(NotApplicable):
        backend.be_slow(0.03)


async def _until_it_returns(session: Any, items: list[Any]) -> None:
    """Repeat a call as a caller would who knows nothing but that it failed."""
    for _ in range(5):
        try:
            await session.add_items(items)
        except Exception:  # noqa: BLE001, S112 - any error means: try again
            continue
        return
    raise AssertionError("it failed five times")


CHECKS = tuple(
    map(
        Check,
        (
            empty, order, many_items, limits, limit_zero, limit_zero_is_free, settings_limit, empty_add,
            given_items_stay, pop_is_last_in_first_out, pop_then_add, concurrent_pops, clear_and_reuse,
            clear_elsewhere, clear_while_reading, two_objects, concurrent_first_writes, long_writes_stay_together,
            lost_reply, lost_replies_of_a_long_write, cancelled_write,
        ),
    )
)  # fmt: skip
