"""Deciding unknown outcomes from evidence: reading the remote history and matching it with what was sent."""
