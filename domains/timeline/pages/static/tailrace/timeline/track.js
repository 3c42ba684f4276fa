// Draws the track of a day with its places, the heat map of a month, or the track of an import. The track of
// an import is fetched when it can be shown, and again whenever the state of the import changes.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const box = document.getElementById("map");
  if (!box || !window.L) return;
  const SHOWN = ["grace", "needs_decision", "enriching", "completed"];
  let map = null;
  let layers = [];
  let last = null;
  let pins = new Map();

  function state() {
    const part = document.querySelector("[data-state]");
    return part ? part.dataset.state : "day";
  }
  async function draw() {
    const now = state();
    if (now === last) return;
    last = now;
    if (now !== "day" && !SHOWN.includes(now)) { box.hidden = true; return; }
    const address = box.dataset.heat || box.dataset.track;
    const reply = await fetch(address, { headers: { "X-Requested-With": "fetch" } });
    if (!reply.ok) { last = null; return; }
    const rows = await reply.json();
    box.hidden = rows.length === 0;
    if (!rows.length) return;
    map ||= window.tailraceMap(box);
    for (const layer of layers) layer.remove();
    layers = box.dataset.heat ? heat(rows) : lines(rows);
    const points = box.dataset.heat ? rows.map(([lat, lon]) => [lat, lon]) : rows.flat();
    map.invalidateSize({ animate: false });
    map.fitBounds(L.latLngBounds(points).pad(0.1), { maxZoom: 16, animate: false });
    box.dataset.drawn = String(points.length);
    drawPlaces();
    for (const layer of (box.dataset.layers || "").split(" ").filter(Boolean)) drawPins(layer);
  }
  function lines(rows) {
    return rows.map((line) => (line.length > 1
      ? L.polyline(line, { className: "ti-line", interactive: false })
      : L.circleMarker(line[0], { className: "ti-dot", radius: 3, interactive: false })).addTo(map));
  }
  function heat(rows) {
    const most = Math.log(rows[0][2] + 1);  // the cell with the most points is the first
    return rows.map(([lat, lon, count]) => {
      const level = Math.max(1, Math.ceil(4 * Math.log(count + 1) / most));
      return L.circleMarker([lat, lon], { className: `ti-cell ti-cell-${level}`, radius: 5, interactive: false })
        .addTo(map);
    });
  }
  // A numbered pin for each place; its popup lists the stays there.
  function drawPlaces() {
    if (pins.size) return;
    for (const stay of document.querySelectorAll("[data-place]")) {
      const { place, lat, lon, title, times } = stay.dataset;
      let pin = pins.get(place);
      if (!pin) {
        const content = document.createElement("div");
        const name = document.createElement("strong");
        const number = document.createElement("span");
        name.textContent = title;
        number.textContent = place;
        content.append(name);
        const icon = L.divIcon({ html: number, className: "ti-pin", iconSize: null });
        const marker = L.marker([Number(lat), Number(lon)], { icon, keyboard: true }).addTo(map).bindPopup(content);
        marker.getElement().setAttribute("aria-label", `Place ${place}: ${title}`);
        pin = { marker, content };
        pins.set(place, pin);
      }
      const line = document.createElement("p");
      line.textContent = times;
      pin.content.append(line);
      stay.addEventListener("click", () => {
        map.setView(pin.marker.getLatLng(), Math.max(map.getZoom(), 14));
        pin.marker.openPopup();
      });
    }
  }
  // The pins of another app, such as photos.
  async function drawPins(address) {
    const reply = await fetch(address, { headers: { "X-Requested-With": "fetch" } });
    if (!reply.ok) return;
    for (const { lat, lon, title, text, href, picture } of await reply.json()) {
      const content = document.createElement("div");
      const link = document.createElement("a");
      const line = document.createElement("p");
      link.href = href;
      link.textContent = title;
      line.textContent = text;
      const shown = picture ? document.createElement("img") : document.createElement("span");
      if (picture) Object.assign(shown, { src: picture, alt: "", width: 40, height: 40 });
      if (picture) content.append(Object.assign(shown.cloneNode(), { className: "ti-picture", width: 160, height: 120 }));
      content.append(link, line);
      const icon = L.divIcon({ html: shown, className: "ti-photo", iconSize: null });
      L.marker([lat, lon], { icon, keyboard: true }).addTo(map).bindPopup(content)
        .getElement().setAttribute("aria-label", title);
    }
  }
  draw();
  document.body.addEventListener("htmx:afterSettle", draw);
});
