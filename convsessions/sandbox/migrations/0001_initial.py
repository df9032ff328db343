# ruff: noqa: RUF012
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="SandboxConversation",
            fields=[
                ("id", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("created_at", models.BigIntegerField(help_text="seconds since 1970")),
                ("metadata", models.TextField(default="{}")),
                (
                    "next_position",
                    models.PositiveBigIntegerField(default=0, help_text="raised first by each append: it is the lock"),
                ),
                (
                    "deleted",
                    models.BooleanField(default=False, help_text="gone for the API; its items stay (documented)"),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SandboxFault",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(max_length=32)),
                ("operation", models.CharField(blank=True, help_text="empty: any", max_length=32)),
                ("conversation", models.CharField(blank=True, help_text="empty: any", max_length=64)),
                ("skip", models.PositiveIntegerField(default=0, help_text="matching requests to let pass first")),
                (
                    "times",
                    models.PositiveIntegerField(default=1, help_text="uses left; NULL: until removed", null=True),
                ),
                ("options", models.TextField(default="{}")),
            ],
            options={
                "ordering": ("pk",),
            },
        ),
        migrations.CreateModel(
            name="SandboxItem",
            fields=[
                ("id", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("payload", models.TextField()),
            ],
        ),
        migrations.CreateModel(
            name="SandboxRequest",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("request_id", models.CharField(help_text="the x-request-id of its answer", max_length=40)),
                ("method", models.CharField(max_length=8)),
                ("path", models.CharField(max_length=500)),
                ("operation", models.CharField(max_length=32)),
                ("conversation", models.CharField(blank=True, db_index=True, max_length=64)),
                ("items", models.PositiveIntegerField(default=0)),
                ("started_at", models.FloatField(help_text="wall clock, seconds since 1970")),
                (
                    "finished_at",
                    models.FloatField(help_text="just before the reply leaves; NULL: still under way", null=True),
                ),
                ("status", models.PositiveSmallIntegerField(default=0, help_text="0: no reply")),
                ("fault", models.CharField(blank=True, max_length=32)),
                ("applied", models.BooleanField(default=False, help_text="it changed a conversation")),
            ],
            options={
                "ordering": ("pk",),
            },
        ),
        migrations.CreateModel(
            name="SandboxSettings",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("latency", models.FloatField(default=0.0, help_text="seconds before each request is looked at")),
            ],
        ),
        migrations.CreateModel(
            name="SandboxEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("position", models.PositiveBigIntegerField()),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="entries",
                        to="convsessions_sandbox.sandboxconversation",
                    ),
                ),
                (
                    "item",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="entries",
                        to="convsessions_sandbox.sandboxitem",
                    ),
                ),
            ],
            options={
                "ordering": ("position",),
                "constraints": [
                    models.UniqueConstraint(fields=("conversation", "position"), name="convsessions_sandbox_place_once")
                ],
            },
        ),
    ]
