"""The Agents SDK: a session for `Runner.run` that survives what its own documentation warns of."""

from .handing_over import HandOver, hand_over
from .session import DjangoConversationsSession

__all__ = ["DjangoConversationsSession", "HandOver", "hand_over"]
