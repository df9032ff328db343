"""What of a page a strict Content-Security-Policy (``default-src 'self'``) would stop."""

from __future__ import annotations

from html.parser import HTMLParser


def inline_parts(html: str) -> list[str]:
    """Inline scripts and styles, event handlers, and addresses on other hosts."""
    found = _Finder()
    found.feed(html)
    return found.parts


class _Finder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        is_data = given.get("type") == "application/json"
        if tag == "style" or (tag == "script" and "src" not in given and not is_data):
            self.parts.append(tag)
        self.parts += [f"{tag} {name}" for name in given if name == "style" or name.startswith("on")]
        if tag in {"script", "link", "img", "iframe"}:
            address = given.get("src") or given.get("href") or ""
            if address.startswith(("http:", "https:", "//", "data:", "javascript:")):
                self.parts.append(f"{tag} {address}")
