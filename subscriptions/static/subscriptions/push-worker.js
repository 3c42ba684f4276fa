// Shows push messages, and opens what they are about (see subscriptions/channels/push.py).
"use strict";
self.addEventListener("push", (event) => {
  let told = {};
  try {
    told = event.data.json();
  } catch { /* a message without text, as some services send to test */ }
  const options = { body: told.body || "", tag: told.tag || "", data: { link: told.link || "" } };
  event.waitUntil(self.registration.showNotification(told.title || "Tailrace", options));
});
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const link = event.notification.data?.link || "";
  event.waitUntil(self.clients.openWindow(/^https?:/.test(link) ? link : "/me/inbox"));
});
