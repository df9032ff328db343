from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SandboxConfig(AppConfig):
    name = "convsessions.sandbox"
    label = "convsessions_sandbox"
    verbose_name = _("Conversations API sandbox")
    default_auto_field = "django.db.models.BigAutoField"
