// For all pages of signed-in users: the menu of small screens, copy buttons, polling only while the page
// is visible, and a notice when a request fails.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const body = document.body;
  const offline = document.getElementById("away");

  const menu = document.querySelector(".me-menu-button");  // only for signed-in users
  const openMenu = (open) => menu.setAttribute("aria-expanded", String(open));
  if (menu) {
    menu.addEventListener("click", () => openMenu(menu.getAttribute("aria-expanded") === "false"));
    body.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || menu.getAttribute("aria-expanded") === "false") return;
      openMenu(false);
      menu.focus();
    });
  }

  body.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target.matches("[hx-trigger^='every']") && document.hidden) event.preventDefault();
  });
  body.addEventListener("htmx:afterSwap", () => { offline.hidden = true; });
  body.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.successful) offline.hidden = true;  // a 204 swaps nothing
  });
  for (const name of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
    body.addEventListener(name, () => { offline.hidden = false; });
  }
  body.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const field = document.getElementById(button.dataset.copy);
    if (field.select) field.select();
    else getSelection().selectAllChildren(field);
    try {
      await navigator.clipboard.writeText(field.value ?? field.textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Press Ctrl-C";  // no clipboard without https; the text is selected
    }
  });
});
