// The overview polls only while its tab is visible, keeps the scroll position of its tables, and
// shows a notice when the server does not answer.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const away = document.getElementById("away");
  const main = document.getElementById("main");
  const positions = new Map();
  const scrollers = () => main.querySelectorAll(".tr-card .tr-scroll");
  const card = (table) => table.closest(".tr-card").id;
  document.body.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target === main && document.hidden) event.preventDefault();
  });
  document.body.addEventListener("htmx:beforeSwap", () => {
    for (const table of scrollers()) positions.set(card(table), table.scrollLeft);
  });
  document.body.addEventListener("htmx:afterSwap", () => {
    for (const table of scrollers()) table.scrollLeft = positions.get(card(table)) || 0;
    away.hidden = true;
  });
  for (const name of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
    document.body.addEventListener(name, () => { away.hidden = false; });
  }
});
