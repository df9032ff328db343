"""A real browser before a real server with a strict Content-Security-Policy. Debian: chromium, chromium-driver.

Without them the tests are skipped on a laptop and fail in CI, which installs them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.test import Client, override_settings
from pytest_django.live_server_helper import LiveServer
from selenium import webdriver

from tests.admin.conftest import (  # noqa: F401 - fixtures
    altered,
    browser,
    chunks_of_three,
    duplicated,
    held,
    late,
    operator,
    partial,
)

from .screen import Screen

ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1280,1000",
)  # fmt: skip


@pytest.fixture(scope="session")
def driver(tmp_path_factory) -> Iterator[webdriver.Chrome]:
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and chromedriver):
        (pytest.fail if os.environ.get("CI") else pytest.skip)("chromium or its driver is missing")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for argument in (*ARGUMENTS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(argument)
    chrome = webdriver.Chrome(options, webdriver.ChromeService(chromedriver))
    yield chrome
    chrome.quit()


@pytest.fixture(scope="session")
def server(django_db_setup, django_db_modify_db_settings) -> Iterator[str]:
    """The address of the site, served by a thread; its middleware is loaded once, so that the policy stays."""
    with override_settings(
        MIDDLEWARE=[*settings.MIDDLEWARE, "tests.browser.policy.strict"], ALLOWED_HOSTS=["localhost"]
    ):
        started = LiveServer("localhost")
    yield started.url
    started.stop()


@pytest.fixture
def screen_of(driver, server, settings, transactional_db) -> Iterator[Callable[[Client], Screen]]:
    """`screen_of(client)`: the browser, logged in as the test client is. What it complains of fails the test."""
    settings.ALLOWED_HOSTS = ["localhost", "testserver"]
    driver.delete_all_cookies()
    driver.get_log("browser")

    def log_in(client: Client) -> Screen:
        driver.get(f"{server}/admin/login/")
        driver.add_cookie({"name": "sessionid", "value": client.cookies["sessionid"].value})
        return Screen(driver, server)

    yield log_in
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    driver.get("about:blank")  # nothing of the page may go on asking the server
    complaints = [entry["message"] for entry in driver.get_log("browser") if "favicon" not in entry["message"]]
    assert [one for one in complaints if "403 (Forbidden)" not in one] == []


@pytest.fixture
def screen(screen_of, browser) -> Any:  # noqa: F811 - the fixture
    """The browser of an operator who may do everything."""
    return screen_of(browser)
