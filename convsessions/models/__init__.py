"""The rows of the journal. Reading is free; only `convsessions.journal` writes."""

from .evidence import Reconciliation, RequestAttempt
from .heartbeat import Heartbeat
from .session import ConversationSession
from .write import WriteChunk, WriteIntent

__all__ = ["ConversationSession", "Heartbeat", "Reconciliation", "RequestAttempt", "WriteChunk", "WriteIntent"]
