// htmx in the admin, as unfold uses it: without a <style> and without eval.
"use strict";
htmx.config.includeIndicatorStyles = false;
htmx.config.allowEval = false;

// Simplebar calls every part that scrolls "scrollable content": each has a name of its own.
document.addEventListener("DOMContentLoaded", () => {
  const names = { "nav-sidebar-apps": "Pages of the admin", "changelist-filter": "Filters", "changelist-form": "Results" };
  const owners = Object.keys(names).map((id) => `#${id}`).join();
  document.querySelectorAll("[data-simplebar]").forEach((part, number) => {
    part.dataset.simplebarAriaLabel = names[part.closest(owners)?.id] ?? `List ${number}`;
  });
});

// On a small screen a row is a list of names and values: those without a value are left out.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("#result_list td[data-label]").forEach((cell) => {
    if (!cell.childElementCount && ["", "-", "–"].includes(cell.textContent.trim())) cell.classList.add("tr-none");
  });
});

// Select2 names its boxes by what is chosen in them, and fields in tables have no name but their
// column's: each gets the label of its field.
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
  // The icons beside Django's filters of two lists have a name, but nothing says what they are.
  setTimeout(() => {
    document.querySelectorAll(".help-tooltip[aria-label]").forEach((icon) => icon.setAttribute("role", "img"));
  });
  document.querySelectorAll(".formset-wrapper th").forEach((head) => {
    if (!head.childElementCount && !head.textContent.trim()) head.innerHTML = '<span class="tr-hidden">Remove</span>';
  });
});
document.addEventListener("formset:added", () => setTimeout(nameFields));
document.addEventListener("DOMContentLoaded", () => {
  // Select2 makes its boxes at a time of its own.
  const isBox = (node) => node.classList?.contains("select2");
  new MutationObserver((changes) => {
    if (changes.some((change) => [...change.addedNodes].some(isBox))) nameFields();
  }).observe(document.body, { childList: true, subtree: true });
});
