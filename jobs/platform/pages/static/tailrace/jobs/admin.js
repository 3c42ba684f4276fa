// htmx in the admin, as unfold uses it: without a <style> and without eval.
"use strict";
htmx.config.includeIndicatorStyles = false;
htmx.config.allowEval = false;

// Simplebar labels every scrolling part "scrollable content": give each part a label of its own.
document.addEventListener("DOMContentLoaded", () => {
  const names = { "nav-sidebar-apps": "Pages of the admin", "changelist-filter": "Filters", "changelist-form": "Results" };
  const owners = Object.keys(names).map((id) => `#${id}`).join();
  document.querySelectorAll("[data-simplebar]").forEach((part, number) => {
    part.dataset.simplebarAriaLabel = names[part.closest(owners)?.id] ?? `List ${number}`;
  });
});

// On a small screen a row is a list of names and values: hide the names without a value.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("#result_list td[data-label]").forEach((cell) => {
    if (!cell.childElementCount && ["", "-", "–"].includes(cell.textContent.trim())) cell.classList.add("tr-none");
  });
});

// Select2 labels its boxes by the chosen option, and fields in tables are labelled only by their
// column: give each of them the label of its field.
function nameFields() {
  document.querySelectorAll("td[data-label]").forEach((cell) => {
    for (const field of cell.querySelectorAll("input:not([type=hidden]), select, textarea"))
      if (!field.labels?.length) field.setAttribute("aria-label", cell.dataset.label);
  });
  document.querySelectorAll("select.select2-hidden-accessible").forEach((select) => {
    const label = select.labels[0]?.textContent.trim() || select.getAttribute("aria-label");
    const box = select.nextElementSibling?.querySelector(".select2-selection");
    if (!label || !box) return;
    box.removeAttribute("aria-labelledby");
    for (const part of [box, box.querySelector(".select2-selection__rendered")]) part?.setAttribute("aria-label", label);
  });
}
window.addEventListener("load", () => {
  nameFields();
  // The help icons of Django's two-list filters have a label, but no role.
  setTimeout(() => {
    document.querySelectorAll(".help-tooltip[aria-label]").forEach((icon) => icon.setAttribute("role", "img"));
  });
  document.querySelectorAll(".formset-wrapper th").forEach((head) => {
    if (!head.childElementCount && !head.textContent.trim()) head.innerHTML = '<span class="tr-hidden">Remove</span>';
  });
});
document.addEventListener("formset:added", () => setTimeout(nameFields));
document.addEventListener("DOMContentLoaded", () => {
  // Select2 may create its boxes later.
  const isBox = (node) => node.classList?.contains("select2");
  new MutationObserver((changes) => {
    if (changes.some((change) => [...change.addedNodes].some(isBox))) nameFields();
  }).observe(document.body, { childList: true, subtree: true });
});

// In lists, j and k move the focus along the rows, and r loads the list again; Enter opens a row, as
// any link. Unfold has / for the search.
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]");
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping || !document.querySelector("#result_list")) return;
  if (event.key === "r") location.reload();
  const step = { j: 1, k: -1 }[event.key];
  if (!step) return;
  const rows = [...document.querySelectorAll("#result_list tr")].filter((row) => row.querySelector("td a[href], th a[href]:not([href^='?'])"));
  const at = rows.indexOf(document.activeElement.closest("#result_list tr"));
  const next = rows[Math.min(Math.max(at < 0 && step < 0 ? 0 : at + step, 0), rows.length - 1)];
  next?.querySelector("td a[href], th a[href]:not([href^='?'])").focus();
});
