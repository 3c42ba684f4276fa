// Uploads dropped or chosen pictures, two at a time, each with a progress bar. If a picture's EXIF
// lacks location or time, a form beside the picture asks for them.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const drop = document.getElementById("drop");
  const list = document.getElementById("uploads");
  const rowTemplate = document.getElementById("line").content;
  const summary = document.getElementById("summary");
  const plain = document.getElementById("plain");
  const fromTimeline = document.getElementById("from-timeline");
  const chooser = document.getElementById("files");
  const token = plain.querySelector("[name=csrfmiddlewaretoken]").value;
  const { address, maxBytes, maxSize, photo } = drop.dataset;
  const MAX_RUNNING = 2;
  const queue = [];
  const uploads = new Set();
  let running = 0;
  let lastValues = {};

  if ("fallback" in plain.dataset) plain.classList.add("ph-unused");
  drop.hidden = false;

  const size = (bytes) =>
    bytes < 1e5 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
  const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
  const newKey = () =>
    [...crypto.getRandomValues(new Uint8Array(16))].map((n) => n.toString(16).padStart(2, "0")).join("");

  class Upload {
    constructor(file) {
      this.file = file;
      this.key = newKey();
      this.fields = {};
      this.row = rowTemplate.cloneNode(true).firstElementChild;
      this.bar = this.row.querySelector("progress");
      this.status = this.row.querySelector(".ph-status");
      this.form = this.row.querySelector(".ph-missing");
      this.retry = this.row.querySelector(".ph-retry");
      const remove = this.row.querySelector(".ph-remove");
      this.row.querySelector(".ph-name").textContent = file.name;
      this.row.querySelector(".ph-size").textContent = size(file.size);
      this.bar.setAttribute("aria-label", `Upload of ${file.name}`);
      remove.setAttribute("aria-label", `Remove ${file.name}`);
      this.retry.setAttribute("aria-label", `Try again: ${file.name}`);
      for (const field of this.form.querySelectorAll("[data-field]")) {
        const input = field.querySelector("input");
        input.id = `${field.dataset.field}-${this.key}`;
        field.querySelector("label").htmlFor = input.id;
      }
      this.retry.addEventListener("click", () => this.enqueue());
      remove.addEventListener("click", () => { this.remove(); });
      this.form.addEventListener("submit", (event) => { event.preventDefault(); this.submitFields(); });
      list.append(this.row);
      list.hidden = false;
      if (file.size > Number(maxBytes)) {
        this.fail(`The file is ${size(file.size)}; the limit is ${maxSize}.`, false);
      } else this.enqueue();
    }

    show(text, kind = "") {
      this.status.textContent = text;
      this.status.className = `ph-status ${kind}`;
    }

    enqueue() {
      this.state = "queued";
      this.retry.hidden = this.form.hidden = true;
      this.bar.hidden = false;
      this.bar.value = 0;
      this.show("Waiting.");
      queue.push(this);
      startNext();
    }

    send() {
      this.state = "uploading";
      this.show("Uploading.");
      const form = new FormData();
      for (const [name, value] of Object.entries(this.fields)) form.append(name, value);
      if (fromTimeline.checked && !("lat" in this.fields)) form.append("place_from_timeline", "true");
      form.append("file", this.file);
      const request = this.request = new XMLHttpRequest();
      request.open("POST", address);
      request.setRequestHeader("X-CSRFToken", token);
      request.setRequestHeader("Idempotency-Key", this.key);
      request.responseType = "json";
      request.upload.addEventListener("progress", (event) => {
        if (event.lengthComputable) this.bar.value = (100 * event.loaded) / event.total;
      });
      request.upload.addEventListener("load", () => this.show("Processing."));
      request.addEventListener("load", () => this.handleResponse(request));
      request.addEventListener("error", () => this.fail("The connection was lost.", true));
      request.addEventListener("loadend", () => { running -= 1; startNext(); });
      request.send(form);
    }

    handleResponse(request) {
      const body = request.response || {};
      if (request.status === 200 || request.status === 201) return this.succeed(body);
      const busy = body.type === "urn:tailrace:problem:busy";
      if (request.status === 429 || busy) {
        this.show(busy ? "Waiting: the server is busy." : "Waiting: too many requests.");
        this.state = "queued";
        const seconds = Number(request.getResponseHeader("Retry-After")) || 1;
        setTimeout(() => { if (this.state === "queued") { queue.push(this); startNext(); } }, seconds * 1000);
        return undefined;
      }
      if (request.status === 401 || body.type === "urn:tailrace:problem:csrf") {
        return this.fail("You are signed out. Sign in again in another tab, then reload this page.", true);
      }
      const errors = (body.errors || []).map((error) => ({ ...error, field: (error.pointer || "").slice(2) }));
      const inForm = (error) => this.form.querySelector(`[data-field="${CSS.escape(error.field)}"]`);
      if (request.status === 422 && errors.length && errors.every(inForm)) return this.askFor(errors);
      const text = errors.length ? errors.map((error) => error.detail).join("; ") : body.detail;
      return this.fail(sentence(text || "The server could not process the upload."), request.status >= 500);
    }

    succeed(body) {
      this.state = "stored";
      this.bar.value = 100;
      this.bar.hidden = true;
      const fromExif = new Set(body.read);
      const source = (...names) => (names.every((name) => fromExif.has(name)) ? "from the picture" : "as entered");
      const place = body.state === "unplaced"
        ? ", without a location: the photo gets its location when your timeline has points of that time"
        : ` at ${body.lat.toFixed(5)}, ${body.lon.toFixed(5)} (${source("lat", "lon")})`;
      this.show(
        `Stored: taken ${new Date(body.taken_at).toISOString().slice(0, 19).replace("T", " ")} UTC (${source("taken_at")})${place}.`,
        "ph-good",
      );
      const image = document.createElement("img");
      image.src = photo.replace("/0/", `/${body.id}/`);
      image.alt = "";
      const thumb = this.row.querySelector(".ph-thumb");
      thumb.append(image);
      thumb.hidden = false;
      this.row.querySelector(".ph-remove").remove();
      updateSummary();
    }

    askFor(errors) {
      this.state = "incomplete";
      this.bar.hidden = true;
      const fields = new Set(errors.map((error) => error.field));
      const missing = errors.every((error) => error.detail.startsWith("not in the picture's EXIF"));
      this.show(
        missing
          ? "The picture does not contain the location or time it was taken. Please enter it."
          : sentence(errors.map((error) => error.detail).join("; ")),
        "ph-bad",
      );
      // Fields that the user filled in before stay visible.
      for (const field of this.form.querySelectorAll("[data-field]")) {
        const name = field.dataset.field;
        field.hidden = !fields.has(name) && !(name in this.fields);
        const input = field.querySelector("input");
        if (!field.hidden && !input.value && lastValues[name]) input.value = lastValues[name];
      }
      this.form.hidden = false;
      if (document.activeElement === document.body) this.form.querySelector(".me-field:not([hidden]) input").focus();
      updateSummary();
    }

    submitFields() {
      this.fields = {};
      for (const field of this.form.querySelectorAll("[data-field]")) {
        const input = field.querySelector("input");
        const text = input.value.trim();
        if (field.hidden || !text) continue;
        lastValues[input.name] = text;
        this.fields[input.name] = input.name === "taken_at" ? new Date(text).toISOString() : text.replace(",", ".");
      }
      this.key = newKey();
      this.enqueue();
    }

    fail(text, canRetry) {
      this.state = "failed";
      this.bar.hidden = true;
      this.retry.hidden = !canRetry;
      this.show(text, "ph-bad");
      updateSummary();
    }

    remove() {
      this.state = "removed";
      if (this.request && this.request.readyState !== XMLHttpRequest.DONE) this.request.abort();
      const neighbour = this.row.nextElementSibling || this.row.previousElementSibling;
      this.row.remove();
      uploads.delete(this);
      list.hidden = !list.children.length;
      (neighbour?.querySelector("button:not([hidden])") || chooser).focus();
      updateSummary();
    }
  }

  function startNext() {
    while (running < MAX_RUNNING && queue.length) {
      const upload = queue.shift();
      if (upload.state !== "queued") continue;
      running += 1;
      upload.send();
    }
    updateSummary();
  }
  function updateSummary() {
    const count = (state) => [...uploads].filter((upload) => upload.state === state).length;
    const parts = [`${count("stored")} of ${uploads.size} stored`];
    if (count("incomplete")) parts.push(`${count("incomplete")} incomplete`);
    if (count("failed")) parts.push(`${count("failed")} failed`);
    summary.textContent = uploads.size ? `${parts.join(", ")}.` : "";
  }
  function add(files) {
    for (const file of files) uploads.add(new Upload(file));
    updateSummary();
  }
  chooser.addEventListener("change", () => { add([...chooser.files]); chooser.value = ""; });
  for (const name of ["dragenter", "dragover"]) {
    document.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("ph-over"); });
  }
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) drop.classList.remove("ph-over"); });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("ph-over");
    add([...event.dataTransfer.files]);
  });
  window.addEventListener("beforeunload", (event) => { if (running) event.preventDefault(); });
});
