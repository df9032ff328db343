"""The operator's pages: lists and details to read, and repairs as explicit verbs, each with its own permission.

`SessionAdmin` and `WriteAdmin` register with the default admin site here. A site of one's own registers them itself:
``site.register(WriteIntent, WriteAdmin)``; every address is built for the site that serves the page.
"""

from django.contrib import admin

from convsessions.models import ConversationSession, WriteIntent

from .sessions import SessionAdmin
from .writes import WriteAdmin

__all__ = ["SessionAdmin", "WriteAdmin"]

admin.site.register(ConversationSession, SessionAdmin)
admin.site.register(WriteIntent, WriteAdmin)
