// Lists that come anew: only while they are looked at, and saying so when the server is away.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const away = document.getElementById("away");
  document.body.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target.matches(".ph-live") && document.hidden) event.preventDefault();
  });
  // Nothing has changed: no swap says that the server is back.
  document.body.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.successful) away.hidden = true;
  });
});
