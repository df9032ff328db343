/* Loads the part of the page that says how far it is anew, as long as it asks for that (data-follow: milliseconds). */
"use strict";
(function () {
    function again() {
        const part = document.getElementById("cs-follow");
        if (!part || !part.dataset.follow) return;
        setTimeout(function () {
            fetch(location.href, {credentials: "same-origin"})
                .then((answer) => (answer.ok ? answer.text() : ""))
                .then(function (text) {
                    const fresh = text && new DOMParser().parseFromString(text, "text/html").getElementById("cs-follow");
                    // Where somebody is about to follow a link, the focus must not be lost.
                    if (fresh && !part.contains(document.activeElement)) part.replaceWith(fresh);
                })
                .catch(function () {})
                .finally(again);
        }, Number(part.dataset.follow));
    }
    again();
})();
