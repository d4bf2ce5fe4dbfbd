#!/usr/bin/env python3
"""Write docs/screenshots/page.png: the page about the kept records of the demo, as Chromium shows it.

usage: .venv/bin/python scripts/screenshot.py    (needs chromium on PATH)
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "screenshots" / "page.png"
SIZE = "1200,1080"  # pixels


def main() -> int:
    """Write the page and its picture. Returns 1 where Chromium is missing."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        print("screenshot: needs chromium (Debian: apt-get install chromium)", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        words = ["-m", "haloscope.cli", "report", ROOT / "results" / "demo.jsonl", "-o", page]
        subprocess.run([sys.executable, *words], check=True)
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={SIZE}"]
        flags += ["--virtual-time-budget=8000", f"--screenshot={PICTURE}", page.as_uri()]
        subprocess.run([browser, *flags], check=True, stderr=subprocess.DEVNULL)
    return 0


if __name__ == "__main__":
    sys.exit(main())
