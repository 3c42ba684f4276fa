// Uploads the chosen or dropped file with a progress bar, then opens the page of its import. Without
// JavaScript, the browser submits the form itself.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("upload");
  const input = form.querySelector("input[type=file]");
  const status = document.getElementById("status");
  const bar = document.getElementById("sent");
  const button = form.querySelector("button[type=submit]");
  const token = form.querySelector("[name=csrfmiddlewaretoken]").value;
  const { address, maxBytes, maxSize } = form.dataset;
  let running = false;

  function show(text, bad) {
    status.hidden = false;
    status.textContent = text;
    status.classList.toggle("ti-bad", Boolean(bad));
  }
  function fail(text) {
    running = button.disabled = false;
    bar.hidden = true;
    show(text, true);
  }
  function send(file) {
    if (running || !file) return;
    if (file.size > Number(maxBytes)) { fail(`The file is too large. The limit is ${maxSize}.`); return; }
    running = button.disabled = true;
    const body = new FormData();
    body.append("device", form.querySelector("[name=device]").value);
    body.append("one_device", String(form.querySelector("[name=split]:checked").value === "one"));
    body.append("file", file);
    const request = new XMLHttpRequest();
    request.open("POST", address);
    request.setRequestHeader("X-CSRFToken", token);
    request.responseType = "json";
    bar.hidden = false;
    show(`Uploading ${file.name}.`);
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) bar.value = (100 * event.loaded) / event.total;
    });
    request.upload.addEventListener("load", () => show("Storing the file."));
    request.addEventListener("load", () => {
      const reply = request.response || {};
      if (request.status === 202) {
        running = false;
        location.assign(form.dataset.import.replace(/0$/, String(reply.id)));
        return;
      }
      if (request.status === 401 || reply.type === "urn:tailrace:problem:csrf") {
        fail("You are signed out. Sign in again in another tab, then reload this page.");
        return;
      }
      const text = reply.errors?.length ? reply.errors.map((error) => error.detail).join("; ") : reply.detail;
      const sentence = text || "The server could not store the file";
      fail(sentence.charAt(0).toUpperCase() + sentence.slice(1) + ".");
    });
    request.addEventListener("error", () => fail("The connection was lost."));
    request.send(body);
  }
  form.addEventListener("submit", (event) => { event.preventDefault(); send(input.files[0]); });
  for (const name of ["dragenter", "dragover"]) {
    document.addEventListener(name, (event) => { event.preventDefault(); form.classList.add("ti-over"); });
  }
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) form.classList.remove("ti-over");
  });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    form.classList.remove("ti-over");
    send(event.dataTransfer.files[0]);
  });
  window.addEventListener("beforeunload", (event) => { if (running) event.preventDefault(); });
});
