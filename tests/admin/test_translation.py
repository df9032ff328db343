"""What the admin says can be translated: no words in its templates, nor in messages, that pass gettext by."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import convsessions

PACKAGE = Path(convsessions.__file__).parent
TEMPLATES = sorted((PACKAGE / "templates").rglob("*.html"))
NAMES = {"p50", "p95"}
"""Terms that are the same in every language."""


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_no_words_of_a_template_pass_gettext_by(template):
    text = template.read_text()
    text = re.sub(r"{% block bodyclass %}.*", "", text)
    for block in ("comment", "blocktranslate"):
        text = re.sub(rf"(?s){{%\s*{block}\b.*?{{%\s*end{block}\s*%}}", "", text)
    text = re.sub(r"(?s){%.*?%}|{{.*?}}", "", text)
    spoken = re.findall(r'\b(?:aria-label|title|placeholder|alt)="([^"]*)"', text)
    words = re.findall(r"[A-Za-z]\w+", re.sub(r"(?s)<[^>]*>|&\w+;", " ", text) + " ".join(spoken))

    assert set(words) - NAMES == set()


@pytest.mark.parametrize("module", sorted((PACKAGE / "admin").glob("*.py")), ids=lambda path: path.name)
def test_no_message_description_or_title_passes_gettext_by(module):
    bare = r"messages\.\w+\(\s*[\w.]+,\s*f?[\"']|(?<!<)\b(?:description|help_text|search_help_text)=f?[\"']"

    assert re.findall(bare, module.read_text()) == []
