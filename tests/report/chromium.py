"""A page in headless Chromium: run a script against it, at a width, and read what it returns."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

_CHECKS = Path(__file__).with_name("page_checks.js").read_text(encoding="utf-8")

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
    "--virtual-time-budget=4000",
)

# The page is shown in a frame of the wanted width, since the window itself has a least width; a frame
# of the same origin lets the script outside look in although the page's policy runs no foreign script.
_HARNESS = """<!DOCTYPE html><meta charset="utf-8">
<iframe id="page" width="{width}" height="{height}" style="border:0" srcdoc="{page}"></iframe>
<pre id="result"></pre>
<script>
{checks}
const frame = document.getElementById("page");
frame.addEventListener("load", () => setTimeout(() => {{
  const window = frame.contentWindow;
  const document = window.document;
  let found;
  try {{
    found = {{ value: (() => {{ {script} }})() }};
  }} catch (error) {{
    found = {{ error: String(error) }};
  }}
  globalThis.document.getElementById("result").textContent = JSON.stringify(found);
}}, 200));
</script>"""


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of a script in a page."""

    value: dict[str, Any]
    console: tuple[str, ...]
    """Lines that the page wrote to the console, errors included."""


def look(
    page: str, scripts: Mapping[str, str], folder: Path, *, width: int = 1280, height: int = 9000
) -> Seen:
    """Show a page and run bodies of functions against its ``window`` and ``document``, in order.

    Returns what they returned, by name.
    """
    assert CHROMIUM is not None
    parts = [f"[{json.dumps(name)}, (() => {{ {body} }})()]" for name, body in scripts.items()]
    script = f"return Object.fromEntries([{', '.join(parts)}]);"
    file = folder / f"harness-{width}.html"
    file.write_text(
        _HARNESS.format(width=width, height=height, page=html.escape(page), script=script, checks=_CHECKS),
        encoding="utf-8",
    )
    done = subprocess.run(
        [
            CHROMIUM,
            *_FLAGS,
            f"--user-data-dir={folder / 'profile'}",
            f"--window-size={width + 40},{height}",
            "--dump-dom",
            file.as_uri(),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    match = re.search(r'<pre id="result">(.*?)</pre>', done.stdout, re.DOTALL)
    assert match is not None, done.stderr[-2000:]
    assert match[1], f"the script did not run: {done.stderr[-2000:]}"
    found = json.loads(html.unescape(match[1]))
    assert "error" not in found, found["error"]
    console = tuple(line for line in done.stderr.splitlines() if ":CONSOLE" in line)
    return Seen(found["value"], console)
