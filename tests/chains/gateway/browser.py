"""A headless Chromium, driven over the DevTools protocol as a person would: keys and mouse."""

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import ClientConnection, connect

from tests.clock import PATIENCE_S

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27}


def find_browser() -> str | None:
    """The browser of this machine; None where there is none."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


@contextmanager
def browser(program: str, folder: Path) -> Iterator["Page"]:
    """Start a browser with one empty page."""
    arguments = [
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--no-first-run", "--disable-background-networking", "--remote-debugging-port=0",
        "--remote-allow-origins=*", f"--user-data-dir={folder}", "--window-size=1000,1300",
        "about:blank",
    ]  # fmt: skip
    process = subprocess.Popen(
        [program, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        port_file = folder / "DevToolsActivePort"
        wait(lambda: port_file.is_file() and port_file.read_text().strip())
        port = port_file.read_text().split()[0]
        targets = wait(lambda: httpx.get(f"http://127.0.0.1:{port}/json").json())
        page = next(target for target in targets if target["type"] == "page")
        with connect(page["webSocketDebuggerUrl"], max_size=None) as socket:
            yield Page(socket)
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def wait(condition: Callable[[], Any]) -> Any:
    """Wait until a condition gives something, and return that."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            found = condition()
        except httpx.HTTPError:
            found = None
        if found:
            return found
        assert time.monotonic() < end, "the browser did not get there in time"
        time.sleep(0.05)


class Page:
    """One page of the browser, the addresses that it has loaded, and what the console says."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._number = 0
        self.requested: list[str] = []
        self.complaints: list[str] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """Call a method of the protocol and return its result."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(PATIENCE_S))
            self._note(message)
            if message.get("id") == self._number:
                assert "error" not in message, message["error"]
                return message["result"]

    def _note(self, message: dict[str, Any]) -> None:
        parameters = message.get("params", {})
        match message.get("method"):
            case "Network.requestWillBeSent":
                self.requested.append(parameters["request"]["url"])
            case "Log.entryAdded":
                self.complaints.append(parameters["entry"]["text"])
            case "Runtime.exceptionThrown":
                self.complaints.append(str(parameters["exceptionDetails"]))

    def open(self, address: str) -> None:
        self.call("Page.navigate", url=address)
        wait(lambda: self.value("document.readyState") == "complete")

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def press(self, key: str, *, ctrl: bool = False) -> None:
        text = {"text": "\r"} if key == "Enter" else {}
        event = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
        event |= {"modifiers": 2 if ctrl else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown", **event, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def tab_to(self, condition: str) -> None:
        """Press Tab until ``e``, the element with the focus, meets a condition."""
        for _ in range(30):
            if self.value(f"((e) => Boolean({condition}))(document.activeElement)"):
                return
            self.press("Tab")
        raise AssertionError(f"no element with {condition} can be reached with Tab")

    def point_at(self, selector: str) -> None:
        find = f"document.querySelector({json.dumps(selector)})"
        self.value(f"{find}.scrollIntoView({{block: 'center'}})")
        box = self.value(f"{find}.getClientRects()[0].toJSON()")
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=box["x"] + 5, y=box["y"] + 5)
