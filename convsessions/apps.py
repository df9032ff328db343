from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class ConvsessionsConfig(AppConfig):
    name = "convsessions"
    verbose_name = _("OpenAI conversations")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from . import checks, enqueue  # noqa: F401, PLC0415 - models are importable only now; checks register themselves

        post_migrate.connect(enqueue.ensure_sweep_schedule, sender=self)
