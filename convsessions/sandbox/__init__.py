"""An optional Django app: the Conversations API with its recorded behaviour, and faults on demand.

It needs no key and no network, and serves the real `openai` client over real HTTP: mount `convsessions.sandbox.urls`
under ``v1/``, or run ``manage.py sandbox``. It stores conversations in tables of its own and knows nothing of the rest
of the package. Everything under ``v1/sandbox/`` steers it, and answers only if ``settings.DEBUG`` or
``settings.CONVSESSIONS_SANDBOX_CONTROL``: a host site must not expose it.
"""
