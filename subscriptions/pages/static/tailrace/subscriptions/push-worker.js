// Shows push notifications, and opens their links (see subscriptions/channels/push).
"use strict";
self.addEventListener("push", (event) => {
  let message = {};
  try {
    message = event.data.json();
  } catch { /* some services send messages without data as tests */ }
  const options = { body: message.body || "", tag: message.tag || "", data: { link: message.link || "" } };
  event.waitUntil(self.registration.showNotification(message.title || "Tailrace", options));
});
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const link = event.notification.data?.link || "";
  event.waitUntil(self.clients.openWindow(/^https?:/.test(link) ? link : "/me/inbox"));
});
