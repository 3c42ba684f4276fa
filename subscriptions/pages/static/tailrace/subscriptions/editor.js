// The dialog that edits a subscription.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const body = document.body;
  const editor = document.getElementById("editor");
  let opener = "";
  let restoreFocus = false;

  body.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target.matches(".me-word")) opener = event.target.getAttribute("href");
  });
  body.addEventListener("htmx:afterSwap", (event) => {
    if (event.target === editor && editor.firstElementChild && !editor.open) editor.showModal();
  });
  // After saving, the tables are reloaded, and the link that opened the dialog gets the focus.
  body.addEventListener("chosen", () => { editor.close(); restoreFocus = true; });
  body.addEventListener("htmx:afterSettle", (event) => {
    if (!restoreFocus || !event.target.matches(".me-body")) return;
    const link = event.target.querySelector(`a[href="${CSS.escape(opener)}"]`);
    if (link && (document.activeElement === body || !document.activeElement)) link.focus();
    if (link) restoreFocus = false;
  });
  editor.addEventListener("close", () => { editor.replaceChildren(); });
  for (const name of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
    body.addEventListener(name, () => { editor.close(); });
  }
  body.addEventListener("click", (event) => {
    if (event.target.closest("[data-close]")) editor.close();
  });
});
