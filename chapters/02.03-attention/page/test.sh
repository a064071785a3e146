#!/usr/bin/env bash
# Tests the page in a headless browser: see test.py. Without em++, a browser or Selenium there is nothing to test with.
set -u
export NO_COLOR=1
for needed in "${EMXX:-em++}" chromium chromedriver; do
  command -v "$needed" >/dev/null || { echo "skipped: there is no $needed here (Debian: emscripten chromium chromium-driver python3-selenium)"; exit; }
done
for python in python3 /usr/bin/python3; do  # the first python3 in PATH may be another than the system's
  "$python" -c 'import selenium.webdriver' 2>/dev/null && exec "$python" chapters/02.03-attention/page/test.py "$@"
done
echo 'skipped: python3 has no selenium here (Debian: python3-selenium)'
