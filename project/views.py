from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe


@require_safe
def start(request: HttpRequest) -> HttpResponse:
    """The start page: what this site is, whom it talks to, and where its parts are."""
    context = {"api_url": settings.API_URL, "talks_to_sandbox": settings.TALKS_TO_SANDBOX}
    return render(request, "start.html", context)
