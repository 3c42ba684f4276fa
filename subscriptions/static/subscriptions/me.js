// The pages of a person: the editor's dialog, copying a secret, and polling only while looked at.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const body = document.body;
  const away = document.getElementById("away");
  const editor = document.getElementById("editor");
  let opener = "";
  let awaited = false;

  body.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target.id === "unread" && document.hidden) event.preventDefault();
    if (event.target.matches(".me-word")) opener = event.target.getAttribute("href");
  });
  body.addEventListener("htmx:afterSwap", (event) => {
    away.hidden = true;
    if (event.target === editor && editor.firstElementChild && !editor.open) editor.showModal();
  });
  // What was chosen changes tables, which come anew: the focus goes back to where it was.
  body.addEventListener("chosen", () => { editor?.close(); awaited = true; });
  body.addEventListener("htmx:afterSettle", (event) => {
    if (!awaited || !event.target.matches(".me-body")) return;
    const again = event.target.querySelector(`a[href="${CSS.escape(opener)}"]`);
    if (again && (document.activeElement === body || !document.activeElement)) again.focus();
    if (again) awaited = false;
  });
  editor?.addEventListener("close", () => { editor.replaceChildren(); });
  for (const name of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
    body.addEventListener(name, () => { editor?.close(); away.hidden = false; });
  }
  body.addEventListener("click", async (event) => {
    if (event.target.closest("[data-close]")) editor?.close();
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const shown = document.getElementById(button.dataset.copy);
    shown.select();
    try {
      await navigator.clipboard.writeText(shown.value);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Press Ctrl-C";  // no clipboard without https: it is selected
    }
  });
});
