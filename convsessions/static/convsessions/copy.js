/* Shows the buttons that copy a text field (data-copy: its id): without JavaScript one selects and copies by hand. */
"use strict";
document.querySelectorAll("button[data-copy]").forEach(function (button) {
    button.hidden = false;
    button.addEventListener("click", function () {
        const text = document.getElementById(button.dataset.copy);
        const done = () => (button.textContent = button.dataset.done);
        text.select();
        if (navigator.clipboard) navigator.clipboard.writeText(text.value).then(done, () => document.execCommand("copy") && done());
        else if (document.execCommand("copy")) done();
    });
});
