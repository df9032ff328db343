"""The Agents SDK: a session for `Runner.run` that survives what its own documentation warns of."""

from .session import DjangoConversationsSession

__all__ = ["DjangoConversationsSession"]
