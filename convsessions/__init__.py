"""convsessions: a write-ahead journal for the OpenAI Conversations API."""

__version__ = "0.1.0"
