"""Signals, sent after the commit of what they announce, with `send_robust`: a receiver cannot break delivery.

All but `session_cleared` carry ``write_id`` (UUID) and ``session_id`` (UUID); `session_cleared` carries ``session_id``
and ``generation`` (int). The sender is the model class.
"""

from django.dispatch import Signal

write_saved = Signal()
write_ambiguous = Signal()
write_refused = Signal()
session_cleared = Signal()
