// "Add this browser": create a push subscription and send it to the server.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("this-browser");
  const status = document.getElementById("browser-status");
  const bytes = (text) => Uint8Array.from(
    atob(text.replaceAll("-", "+").replaceAll("_", "/")), (char) => char.charCodeAt(0));

  // Not `serviceWorker.ready`: it waits for a worker that controls this page, and ours does not.
  function activated(registration) {
    const worker = registration.installing || registration.waiting;
    if (registration.active || !worker) return Promise.resolve();
    return new Promise((resolve, reject) => {
      worker.addEventListener("statechange", () => {
        if (worker.state === "activated") resolve();
        if (worker.state === "redundant") reject(new Error("The browser did not install the worker."));
      });
    });
  }

  async function subscribe() {
    if (!("serviceWorker" in navigator && "PushManager" in window)) {
      throw new Error("This browser does not support push notifications, or the page was not loaded over HTTPS.");
    }
    if (await Notification.requestPermission() !== "granted") {
      throw new Error("Notifications are blocked for this site. Allow them in the settings of the browser.");
    }
    const worker = await navigator.serviceWorker.register(form.dataset.worker);
    await activated(worker);
    const key = bytes(form.dataset.key);
    try {
      return await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
    } catch (error) {
      if (error.name !== "InvalidStateError") throw error;
      const old = await worker.pushManager.getSubscription();  // it was created with another key
      await old?.unsubscribe();
      return worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
    }
  }

  async function add() {
    const subscription = await subscribe();
    const name = document.getElementById("browser-name").value;
    const response = await fetch(form.action, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        "X-CSRFToken": form.elements.csrfmiddlewaretoken.value,
      },
      body: JSON.stringify({ ...subscription.toJSON(), name }),
    });
    if (response.status === 422) throw new Error((await response.json()).error);
    if (response.status !== 201) throw new Error("The server refused this browser. Reload the page and try again.");
    location.reload();
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    status.textContent = "Waiting for the browser …";
    add().catch((error) => { status.textContent = error.message; });
  });
});
