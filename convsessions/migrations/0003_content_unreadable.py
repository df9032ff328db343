from django.db import migrations, models

CAUSES = [
    ('', 'not held'),
    ('unreachable', 'the API could not be reached'),
    ('rate_limited', 'rate limited'),
    ('locked', 'the conversation is busy'),
    ('settling', 'waiting until a late request can no longer land'),
    ('unreadable', 'the remote history could not be read'),
    ('unconfirmed', 'a deletion or a change of metadata is not confirmed yet'),
    ('bad_key', 'the API key was rejected'),
    ('forbidden', 'the API key may not do this'),
    ('quota', 'the quota is used up'),
    ('conversation_missing', 'the conversation was not found'),
    ('content_unreadable', 'its content in the journal cannot be decrypted'),
]


class Migration(migrations.Migration):
    """One more cause that needs a person.

    No database can change the expression of a generated column, so that it is made anew, with its index: the table of
    writes is written once more, and locked for that time.
    """

    dependencies = [('convsessions', '0002_fidelity')]

    operations = [
        migrations.AlterField(
            model_name='writeintent',
            name='hold_code',
            field=models.CharField(blank=True, choices=CAUSES, default='', max_length=20, verbose_name='held because'),
        ),
        migrations.RemoveIndex(model_name='writeintent', name='convsessions_attention'),
        migrations.RemoveField(model_name='writeintent', name='needs_attention'),
        migrations.AddField(
            model_name='writeintent',
            name='needs_attention',
            field=models.GeneratedField(
                db_persist=True,
                expression=models.Case(
                    models.When(state='ambiguous', then=models.Value(True)),
                    models.When(
                        hold_code__in=['bad_key', 'forbidden', 'quota', 'conversation_missing', 'content_unreadable'],
                        state__in=['pending', 'sending', 'ambiguous'],
                        then=models.Value(True),
                    ),
                    default=models.Value(None),
                ),
                output_field=models.BooleanField(null=True),
            ),
        ),
        migrations.AddIndex(
            model_name='writeintent',
            index=models.Index(fields=['needs_attention', 'created_at'], name='convsessions_attention'),
        ),
    ]
