#!/usr/bin/env python3
"""Opens the page of `gpuctl pool snapshot --html` in headless Chromium, looks and clicks.

pool_page.py CHROMIUM PAGE [LABEL] [--picture FILE.png] [--dark]
LABEL: a buffer that the table must show. Fails on any error in the console, and if the page asks
for anything but itself.
"""
import argparse
import base64
import json
import os
import pathlib
import subprocess
import tempfile
import time

PATIENCE = 60  # seconds until something that does not come is given up


class Browser:
    """Chromium at the other end of a pipe: JSON texts that end with a NUL."""

    def __init__(self, program, folder):
        down, self.writer = os.pipe()
        self.reader, up = os.pipe()
        high_down, high_up = os.dup(down), os.dup(up)

        def descriptors():
            os.dup2(high_down, 3)
            os.dup2(high_up, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-background-networking", "--remote-debugging-pipe",
             "--user-data-dir=" + folder, "--window-size=1360,1080", "about:blank"],
            pass_fds=sorted({3, 4, high_down, high_up}), preexec_fn=descriptors,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for fd in (down, up, high_down, high_up):
            os.close(fd)
        self.number = 0
        self.rest = b""
        self.events = []
        self.session = None

    def message(self):
        while b"\0" not in self.rest:
            part = os.read(self.reader, 1 << 16)
            if not part:
                raise SystemExit("the browser ended")
            self.rest += part
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.writer, json.dumps(request).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise SystemExit(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise SystemExit(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def until(self, expression):
        end = time.monotonic() + PATIENCE
        while not self.value(expression):
            if time.monotonic() > end:
                raise SystemExit("never happened: " + expression)
            time.sleep(0.02)

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        finally:
            self.process.wait(PATIENCE)


def check(good, what):
    if not good:
        raise SystemExit("wrong: " + what)


def complaints(events, page):
    """What the page said or asked for that it should not have."""
    found = []
    for event in events:
        params = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            found.append(json.dumps(params["exceptionDetails"])[:400])
        elif event.get("method") == "Runtime.consoleAPICalled" and params["type"] != "log":
            found.append(json.dumps(params["args"])[:400])
        elif event.get("method") == "Log.entryAdded":
            found.append(params["entry"]["text"])
        elif event.get("method") == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if url != page and not url.startswith("data:"):
                found.append("it asked for " + url)
    return found


def row_box(browser):
    return browser.value("(() => { const b = $('rows').rows[0].getBoundingClientRect();"
                         "return [b.x + 60, b.y + b.height / 2]; })()")


def block_place(browser):
    """In the middle of what of the selected block can be seen, on the strip of the present."""
    return browser.value("(() => { const b = map.getBoundingClientRect();"
                         "return [b.x + AXIS + plot().w + 12,"
                         "b.y + py(selected.v + selected.size / 2)]; })()")


def shows(browser, label):
    browser.until("document.body && document.body.dataset.ready === 'yes'")
    browser.until("!pending")
    colours = browser.value(
        "(() => { drawMap(); const c = map.getContext('2d');"
        "const d = c.getImageData(0, 0, map.width, map.height).data, s = new Set();"
        "for (let i = 0; i < d.length; i += 4) s.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);"
        "return s.size; })()")
    check(colours > 4, f"the map has {colours} colours")
    check(browser.value("$('cards').children.length") == 8, "the numbers above")
    check(browser.value("$('rows').rows.length") > 0, "the table is empty")
    if label:
        check(browser.value(f"$('rows').textContent.includes({json.dumps(label)})"),
              f"no buffer {label} in the table")


def answers(browser):
    """A row, a block, the wheel, dragging, the buttons."""
    browser.click(*row_box(browser))
    chosen = browser.value("document.body.dataset.selected")
    check(chosen.startswith("0x"), "a click on a row selects nothing")
    check(browser.value("$('details').querySelector('h2').textContent ==="
                        "title($('rows').rows[0].block)"), "the details are another buffer's")
    place = block_place(browser)
    browser.value("select(null)")
    browser.click(*place)
    check(browser.value("document.body.dataset.selected") == chosen,
          "a click on the block does not select it")
    before = browser.value("[x0, x1, y0, y1]")
    x, y = browser.value("(() => { const b = map.getBoundingClientRect();"
                         "return [b.x + b.width / 2, b.y + 100]; })()")
    browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-240)
    browser.until("y1 - y0 < " + repr(0.9 * (before[3] - before[2])))
    low = browser.value("y0")
    browser.mouse("mouseMoved", x, y)
    browser.mouse("mousePressed", x, y, button="left", clickCount=1)
    for step in range(1, 6):
        browser.mouse("mouseMoved", x, y - 8 * step, button="left", buttons=1)
    browser.mouse("mouseReleased", x, y - 40, button="left", clickCount=1)
    check(browser.value("y0") != low, "dragging moves nothing")
    check(browser.value("document.body.dataset.selected") == chosen, "dragging selects")
    browser.value("$('fit').click()")
    check(browser.value("[x0, x1, y0, y1]") == before, "Fit does not show all")
    browser.value("$('by-time').click()")
    browser.until("!pending")
    browser.value("$('find').click()")
    browser.until("!pending")
    check(browser.value("y1 - y0") <= before[3] - before[2], "Selected shows more than all")
    browser.value("$('by-step').click(); $('gone').click(); $('filter').value = 'no such thing';"
                  "$('filter').oninput()")
    check(browser.value("$('rows').rows.length") == 0, "the filter lets all through")
    browser.value("$('filter').value = ''; $('filter').oninput(); $('gone').click()")


def maps(browser):
    """Where memory was mapped stands as lines, which go and come back."""
    picture = "(() => { drawMap(); return map.toDataURL(); })()"
    check(browser.value("m.maps.length") > 0, "no event of mapping in the page")
    shown = browser.value(picture)
    browser.value("$('mapping').click()")
    browser.until("!pending")
    check(browser.value(picture) != shown, "no line where memory was mapped")
    browser.value("$('mapping').click()")
    browser.until("!pending")
    check(browser.value(picture) == shown, "the lines do not come back")


def dark(browser):
    background = "getComputedStyle(document.body).backgroundColor"
    light = browser.value(background)
    browser.call("Emulation.setEmulatedMedia",
                 features=[{"name": "prefers-color-scheme", "value": "dark"}])
    browser.until(background + " !== " + json.dumps(light))
    browser.until("!pending")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("chromium")
    parser.add_argument("page")
    parser.add_argument("label", nargs="?")
    parser.add_argument("--picture")
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--run")
    args = parser.parse_args()
    page = pathlib.Path(args.page).resolve().as_uri()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(args.chromium, folder)
        try:
            target = browser.call("Target.createTarget", url="about:blank", width=1360,
                                  height=1080)["targetId"]
            browser.session = browser.call("Target.attachToTarget", targetId=target,
                                           flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                browser.call(domain + ".enable")
            browser.call("Emulation.setEmulatedMedia",
                         features=[{"name": "prefers-color-scheme", "value": "light"}])
            browser.call("Page.navigate", url=page)
            shows(browser, args.label)
            if not args.run:
                answers(browser)
                maps(browser)
            if args.dark or not args.picture:
                dark(browser)
            if args.run:
                browser.value(args.run)
                browser.until("!pending")
                time.sleep(0.3)
            if args.picture:
                shot = browser.call("Page.captureScreenshot", format="png")["data"]
                pathlib.Path(args.picture).write_bytes(base64.b64decode(shot))
            browser.value("1")
            found = complaints(browser.events, page)
            check(not found, "\n".join(found))
        finally:
            browser.close()
    print("the page shows, answers and complains of nothing")


if __name__ == "__main__":
    main()
