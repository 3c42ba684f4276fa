// "Add this browser": ask the browser for a push subscription and send it to the server.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("this-browser");
  const said = document.getElementById("browser-said");
  const bytes = (text) => Uint8Array.from(
    atob(text.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));

  // `serviceWorker.ready` is for a page that the worker serves, and ours serves none.
  function activated(registration) {
    const worker = registration.installing || registration.waiting;
    if (registration.active || !worker) return Promise.resolve();
    return new Promise((done, failed) => {
      worker.addEventListener("statechange", () => {
        if (worker.state === "activated") done();
        if (worker.state === "redundant") failed(new Error("The browser did not take the worker."));
      });
    });
  }

  async function subscribe() {
    if (!("serviceWorker" in navigator && "PushManager" in window)) {
      throw new Error("This browser has no push messages, or the page did not come by https.");
    }
    if (await Notification.requestPermission() !== "granted") {
      throw new Error("This browser does not let us show messages: allow it in its settings.");
    }
    const worker = await navigator.serviceWorker.register(form.dataset.worker);
    await activated(worker);
    const key = bytes(form.dataset.key);
    try {
      return await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
    } catch (error) {
      if (error.name !== "InvalidStateError") throw error;
      const old = await worker.pushManager.getSubscription();  // made with another key
      await old?.unsubscribe();
      return worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
    }
  }

  async function add() {
    const subscription = await subscribe();
    const name = document.getElementById("browser-name").value;
    const answer = await fetch(form.action, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        "X-CSRFToken": form.elements.csrfmiddlewaretoken.value,
      },
      body: JSON.stringify({ ...subscription.toJSON(), name }),
    });
    if (answer.status === 422) throw new Error((await answer.json()).error);
    if (answer.status !== 201) throw new Error("The server did not take it. Load the page anew.");
    location.reload();
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    said.textContent = "Asking the browser …";
    add().catch((error) => { said.textContent = error.message; });
  });
});
