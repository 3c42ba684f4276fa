// The overview polls only while its tab is visible. It changes only elements that differ, so that
// selections, open details and the focus stay, and shows a notice when the server does not answer.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const away = document.getElementById("away");
  const main = document.getElementById("main");
  Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name, node) =>
    !(name === "open" && node.tagName === "DETAILS");
  document.body.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target === main && document.hidden) event.preventDefault();
  });
  document.body.addEventListener("htmx:afterSwap", () => { away.hidden = true; });
  for (const name of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
    document.body.addEventListener(name, () => { away.hidden = false; });
  }
});
