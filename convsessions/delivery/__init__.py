"""Bringing recorded writes to the remote: claim, call, settle.

`protocol` is sans-I/O; `drivers` perform its requests with a sync or an async client.
"""
