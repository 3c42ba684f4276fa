// Pictures that are dropped or chosen go up by themselves, two at a time, each with its bar; what
// a picture does not say is asked for beside it.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const drop = document.getElementById("drop");
  const list = document.getElementById("sent");
  const line = document.getElementById("line").content;
  const summary = document.getElementById("summary");
  const plain = document.getElementById("plain");
  const chooser = document.getElementById("files");
  const token = plain.querySelector("[name=csrfmiddlewaretoken]").value;
  const { address, largest, largestWords, photo } = drop.dataset;
  const AT_ONCE = 2;
  const waiting = [];
  let going = 0;
  let lastPlace = {};

  if ("spare" in plain.dataset) plain.classList.add("ph-away");
  drop.hidden = false;

  const words = (bytes) =>
    bytes < 1e5 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
  const newKey = () =>
    [...crypto.getRandomValues(new Uint8Array(16))].map((n) => n.toString(16).padStart(2, "0")).join("");

  class Upload {
    constructor(file) {
      this.file = file;
      this.key = newKey();
      this.fields = {};
      this.state = "waits";
      this.row = line.cloneNode(true).firstElementChild;
      this.bar = this.row.querySelector("progress");
      this.told = this.row.querySelector(".ph-told");
      this.ask = this.row.querySelector(".ph-ask");
      this.again = this.row.querySelector(".ph-again");
      const remove = this.row.querySelector(".ph-drop-it");
      this.row.querySelector(".ph-name").textContent = file.name;
      this.row.querySelector(".ph-size").textContent = words(file.size);
      this.bar.setAttribute("aria-label", `Upload of ${file.name}`);
      remove.setAttribute("aria-label", `Remove ${file.name}`);
      this.again.setAttribute("aria-label", `Try again: ${file.name}`);
      for (const field of this.ask.querySelectorAll("[data-field]")) {
        const input = field.querySelector("input");
        input.id = `${field.dataset.field}-${this.key}`;
        field.querySelector("label").htmlFor = input.id;
      }
      this.again.addEventListener("click", () => this.wait());
      remove.addEventListener("click", () => { this.remove(); });
      this.ask.addEventListener("submit", (event) => { event.preventDefault(); this.answer(); });
      list.append(this.row);
      list.hidden = false;
      if (file.size > Number(largest)) {
        this.fail(`It has ${words(file.size)}, and at most ${largestWords} are taken.`, false);
      } else this.wait();
    }

    say(text, kind = "") {
      this.told.textContent = text;
      this.told.className = `ph-told ${kind}`;
    }

    wait() {
      this.state = "waits";
      this.again.hidden = this.ask.hidden = true;
      this.bar.hidden = false;
      this.bar.value = 0;
      this.say("Waits for its turn.");
      waiting.push(this);
      turn();
    }

    send() {
      this.state = "goes";
      this.say("Goes up.");
      const form = new FormData();
      for (const [name, value] of Object.entries(this.fields)) form.append(name, value);
      form.append("file", this.file);
      const call = this.call = new XMLHttpRequest();
      call.open("POST", address);
      call.setRequestHeader("X-CSRFToken", token);
      call.setRequestHeader("Idempotency-Key", this.key);
      call.responseType = "json";
      call.upload.addEventListener("progress", (event) => {
        if (event.lengthComputable) this.bar.value = (100 * event.loaded) / event.total;
      });
      call.upload.addEventListener("load", () => this.say("Is read."));
      call.addEventListener("load", () => this.heard(call));
      call.addEventListener("error", () => this.fail("The connection broke.", true));
      call.addEventListener("loadend", () => { going -= 1; turn(); });
      call.send(form);
    }

    heard(call) {
      const body = call.response || {};
      if (call.status === 200 || call.status === 201) return this.stored(body);
      if (call.status === 429) {
        this.say("Waits: too many requests at once.");
        this.state = "waits";
        const seconds = Number(call.getResponseHeader("Retry-After")) || 1;
        setTimeout(() => { if (this.state === "waits") { waiting.push(this); turn(); } }, seconds * 1000);
        return undefined;
      }
      if (call.status === 401 || body.type === "urn:tailrace:problem:csrf") {
        return this.fail("You are signed out. Sign in again in another tab, then load this page anew.", true);
      }
      const faults = (body.errors || []).map((one) => ({ ...one, field: (one.pointer || "").slice(2) }));
      const asked = faults.filter((one) => this.ask.querySelector(`[data-field="${CSS.escape(one.field)}"]`));
      if (call.status === 422 && faults.length && asked.length === faults.length) return this.missing(asked);
      const text = faults.length ? faults.map((one) => one.detail).join("; ") : body.detail;
      return this.fail(sentence(text || "The server could not do this."), call.status >= 500);
    }

    stored(body) {
      this.state = "stored";
      this.bar.value = 100;
      this.bar.hidden = true;
      const read = new Set(body.read);
      const from = (...names) => (names.every((name) => read.has(name)) ? "from the picture" : "as you said");
      this.say(
        `Stored: taken ${new Date(body.taken_at).toLocaleString()} (${from("taken_at")}) at ` +
          `${body.lat.toFixed(5)}, ${body.lon.toFixed(5)} (${from("lat", "lon")}).`,
        "ph-good",
      );
      const image = document.createElement("img");
      image.src = photo.replace("/0/", `/${body.id}/`);
      image.alt = "";
      const thumb = this.row.querySelector(".ph-thumb");
      thumb.append(image);
      thumb.hidden = false;
      this.row.querySelector(".ph-drop-it").remove();
      count();
    }

    missing(faults) {
      this.state = "asks";
      this.bar.hidden = true;
      const asked = new Set(faults.map((one) => one.field));
      const lost = faults.every((one) => one.detail.startsWith("the picture does not say it"));
      this.say(
        lost ? "The picture does not say where or when it was taken. Please do." : sentence(faults.map((one) => one.detail).join("; ")),
        "ph-bad",
      );
      // A form without a field has said all that it can: what was given before stays shown.
      for (const field of this.ask.querySelectorAll("[data-field]")) {
        const name = field.dataset.field;
        field.hidden = !asked.has(name) && !(name in this.fields);
        const input = field.querySelector("input");
        if (!field.hidden && !input.value && lastPlace[name]) input.value = lastPlace[name];
      }
      this.ask.hidden = false;
      if (document.activeElement === document.body) this.ask.querySelector(".me-field:not([hidden]) input").focus();
      count();
    }

    answer() {
      this.fields = {};
      for (const field of this.ask.querySelectorAll("[data-field]")) {
        const input = field.querySelector("input");
        const text = input.value.trim();
        if (field.hidden || !text) continue;
        lastPlace[input.name] = text;
        this.fields[input.name] = input.name === "taken_at" ? new Date(text).toISOString() : text.replace(",", ".");
      }
      this.key = newKey();
      this.wait();
    }

    fail(text, again) {
      this.state = "failed";
      this.bar.hidden = true;
      this.again.hidden = !again;
      this.say(text, "ph-bad");
      count();
    }

    remove() {
      this.state = "gone";
      if (this.call && this.call.readyState !== XMLHttpRequest.DONE) this.call.abort();
      const next = this.row.nextElementSibling || this.row.previousElementSibling;
      this.row.remove();
      uploads.delete(this);
      list.hidden = !list.children.length;
      (next?.querySelector("button:not([hidden])") || chooser).focus();
      count();
    }
  }

  const uploads = new Set();
  const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");

  function turn() {
    while (going < AT_ONCE && waiting.length) {
      const next = waiting.shift();
      if (next.state !== "waits") continue;
      going += 1;
      next.send();
    }
    count();
  }
  function count() {
    const of = (...states) => [...uploads].filter((one) => states.includes(one.state)).length;
    const parts = [`${of("stored")} of ${uploads.size} stored`];
    if (of("asks")) parts.push(`${of("asks")} to be completed`);
    if (of("failed")) parts.push(`${of("failed")} not taken`);
    summary.textContent = uploads.size ? `${parts.join(", ")}.` : "";
  }
  function add(files) {
    for (const file of files) uploads.add(new Upload(file));
    count();
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
  window.addEventListener("beforeunload", (event) => { if (going) event.preventDefault(); });
});
