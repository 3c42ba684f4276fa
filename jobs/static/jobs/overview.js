// The overview polls only while it is looked at, keeps tables where they were scrolled to, and
// says so when the server does not answer.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const away = document.getElementById("away");
  const main = document.getElementById("main");
  const places = new Map();
  const scrollers = () => main.querySelectorAll(".tr-card .tr-scroll");
  const card = (table) => table.closest(".tr-card").id;
  document.body.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target === main && document.hidden) event.preventDefault();
  });
  document.body.addEventListener("htmx:beforeSwap", () => {
    for (const table of scrollers()) places.set(card(table), table.scrollLeft);
  });
  document.body.addEventListener("htmx:afterSwap", () => {
    for (const table of scrollers()) table.scrollLeft = places.get(card(table)) || 0;
    away.hidden = true;
  });
  for (const name of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
    document.body.addEventListener(name, () => { away.hidden = false; });
  }
});
