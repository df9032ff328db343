"""The wire: requests as values, outcomes as values, and the two gateways that turn one into the other.

Only this package imports `openai`. It knows no rows.
"""
