"""The page on which an operator decides what becomes of one ambiguous write.

The remote is read for every view of it, outside any transaction. What is shown is what is decided on: the page carries
the token of its evidence, and where the evidence has changed by the time of the decision, nothing is done and the page
shows the new one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from convsessions import operations
from convsessions.exceptions import (
    ContentUnreadable,
    EvidenceChanged,
    IllegalMove,
    InvalidInput,
    RemoteReadFailed,
    WriteNotFound,
)
from convsessions.models import WriteIntent
from convsessions.states import Resolution, Verdict

from .choices import choices_of, reason_of
from .display import badge
from .evidence import facts_of
from .lines import lines_of
from .situation import Situation
from .timeline import VERDICTS, events_of

if TYPE_CHECKING:
    from .writes import WriteAdmin

CHANGED = _("The evidence has changed since you looked. Nothing was done; decide on what is shown now.")


class ResolveForm(forms.Form):
    resolution = forms.ChoiceField(
        label=_("What is to be done"), choices=Resolution, error_messages={"required": _("Choose what is to be done.")}
    )
    reason = forms.CharField(
        label=_("Reason"),
        max_length=2000,
        help_text=_("For those who read this later."),
        error_messages={"required": _("Say why, for those who read this later.")},
    )
    confirmed = forms.BooleanField(
        label=_("I have read what my choice will do."), error_messages={"required": _("Confirm that you want this.")}
    )
    evidence = forms.CharField(required=False)


class ResolvePage:
    """One request for the page of `write`."""

    def __init__(self, model_admin: WriteAdmin, request: HttpRequest, write: WriteIntent) -> None:
        self.admin, self.request, self.write = model_admin, request, write

    def respond(self) -> HttpResponse:
        """GET shows; POST decides, and shows again what stood in the way."""
        form = ResolveForm(self.request.POST) if self.request.method == "POST" else ResolveForm()
        try:
            if form.is_bound and form.is_valid() and self._decide(form):
                return self._back()
            return self._show(form)
        except (IllegalMove, WriteNotFound) as error:
            # Somebody else, or the first of two clicks, was here before.
            messages.warning(self.request, gettext("Nothing was done: %(why)s") % {"why": error})
            return self._back()

    def _decide(self, form: ResolveForm) -> bool:
        """Whether the decision was carried out; otherwise the form says why not."""
        resolution = Resolution(form.cleaned_data["resolution"])
        try:
            self._resolve(resolution, form.cleaned_data["reason"], form.cleaned_data["evidence"])
        except EvidenceChanged:
            form.add_error(None, CHANGED)
        except InvalidInput as error:
            form.add_error(error.field if error.field in form.fields else None, error.problem)
        except (RemoteReadFailed, ContentUnreadable) as error:
            form.add_error(None, gettext("Nothing was done: %(why)s") % {"why": error})
        else:
            messages.success(self.request, gettext("Recorded: %(resolution)s.") % {"resolution": resolution.label})
            return True
        return False

    def _resolve(self, resolution: Resolution, reason: str, evidence: str) -> None:
        user = self.request.user
        if resolution == Resolution.RECHECK:
            # Decides nothing by what was shown, so that it works while the remote cannot be read.
            operations.reconcile_write(self.write.pk, actor=user, reason=reason)
        else:
            operations.resolve_write(self.write.pk, resolution, reason=reason, actor=user, evidence=evidence)
        self.admin.log_change(self.request, self.write, f"{resolution.label}: {reason}")

    def _back(self) -> HttpResponse:
        return HttpResponseRedirect(self.admin.address("change", self.write.pk))

    def _show(self, form: ResolveForm) -> HttpResponse:
        situation = Situation(self.write)
        seen = form.data.get("evidence", "") if form.is_bound else situation.token
        if seen != situation.token and not form.has_error("__all__"):
            form.add_error(None, CHANGED)
        return self.admin.page(
            self.request,
            "writeintent/resolve.html",
            title=gettext("Resolve %(write)s") % {"write": str(self.write)[:15]},
            original=self.write,
            form=form,
            read_at=timezone.now(),
            situation=situation,
            events=events_of(self.write),
            choices=choices_of(situation),
            **self._in_words(situation),
            **self.admin.summary(self.request, self.write),
        )

    def _in_words(self, situation: Situation) -> dict[str, Any]:
        may_see = self.admin.has_payload_permission(self.request)
        before, verdict = self.write.error_code, situation.verdict
        word = str(Verdict(verdict).label).partition(":")[0] if verdict else gettext("unreadable")
        return {
            "verdict": badge(VERDICTS.get(verdict, "refused"), word),
            "reason": reason_of(situation),
            "before": Verdict(before).label if before in Verdict.values and verdict not in {"", before} else "",
            "before_facts": facts_of(situation.last_look.evidence) if situation.last_look else [],
            "facts": facts_of(situation.evidence),
            "sections": [
                (
                    section,
                    lines_of(situation.rows(section), first_item=section.chunk.first_item, with_text=may_see),
                )
                for section in situation.sections
            ],
            "anchor_owner": situation.owners.get(situation.anchor),
            "may_see_content": may_see,
        }
