"""What a person does with a browser, in few words. Every step waits for a condition, none for a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

SECONDS = 30


class Screen:
    def __init__(self, driver: Chrome, server: str) -> None:
        self.driver, self.server = driver, server

    def open(self, path: str) -> None:
        self.driver.get(self.server + path)

    def until(self, condition: Callable[[], Any]) -> Any:
        """The first true value of `condition`."""
        return WebDriverWait(self.driver, SECONDS, 0.05).until(lambda _driver: condition())

    def one(self, selector: str) -> WebElement:
        return self.until(lambda: self.driver.find_elements(By.CSS_SELECTOR, selector))[0]

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def click(self, selector: str) -> None:
        """Click what leads to another page, and wait for that."""
        self.leave(self.one(selector).click)

    def click_text(self, text: str) -> None:
        found = f"//a[normalize-space()='{text}'] | //button[normalize-space()='{text}']"
        self.leave(self.until(lambda: self.driver.find_elements(By.XPATH, found))[0].click)

    def leave(self, act: Callable[[], Any]) -> None:
        """Do something that leads to another page, and wait until that one is there."""
        self.driver.execute_script("window.left_behind = true")
        act()
        ready = "return !window.left_behind && document.readyState === 'complete'"
        self.until(lambda: self.driver.execute_script(ready))

    def double_click(self, selector: str) -> None:
        self.leave(ActionChains(self.driver).double_click(self.one(selector)).perform)

    def press(self, *keys: str) -> None:
        ActionChains(self.driver).send_keys(*keys).perform()

    def tab_to(self, selector: str) -> WebElement:
        """Press Tab until the element has the focus; it must come within 200 times."""
        wanted = self.one(selector)
        for _number in range(200):
            self.press(Keys.TAB)
            if self.driver.switch_to.active_element == wanted:
                return wanted
        raise AssertionError(f"the Tab key never comes to {selector}")

    @property
    def text(self) -> str:
        return self.one("body").text

    @property
    def path(self) -> str:
        return self.driver.current_url.removeprefix(self.server)

    def says(self, text: str) -> None:
        """Wait until the page says `text`."""
        self.until(lambda: text in self.driver.execute_script("return document.body.innerText"))

    def width(self, pixels: int, height: int = 844) -> None:
        metrics = {"width": pixels, "height": height, "deviceScaleFactor": 1, "mobile": True}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def overflow(self) -> int:
        """Pixels by which the page is wider than the screen."""
        wide = "const page = document.documentElement; return page.scrollWidth - page.clientWidth"
        return int(self.driver.execute_script(wide))
