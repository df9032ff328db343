"""The rows of the journal. Reading is free; only `convsessions.journal` writes."""

from .evidence import Reconciliation, RequestAttempt
from .session import ConversationSession
from .write import WriteChunk, WriteIntent

__all__ = ["ConversationSession", "Reconciliation", "RequestAttempt", "WriteChunk", "WriteIntent"]
