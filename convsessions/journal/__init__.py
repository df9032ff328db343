"""The only writer of state, and the only place that locks.

Lock order, written once: the row of the `ConversationSession`, and nothing after it. Writes, chunks, attempts and
reconciliations of a session change only under the lock of its session; no transaction locks two sessions.

- `recording`: what authors do; joins the caller's transaction.
- `leases`, `turn`: what a worker does; every step is a durable transaction of its own.
- `resolving`: what operators do. `restoring`: what follows a restore from a backup.
"""
