// Draws the track of a day or of an import. The track of an import is fetched when it can be shown,
// and again whenever the state of the import changes.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const box = document.getElementById("map");
  if (!box || !window.L) return;
  const SHOWN = ["grace", "needs_decision", "enriching", "completed"];
  let map = null;
  let layers = [];
  let last = null;

  function state() {
    const part = document.querySelector("[data-state]");
    return part ? part.dataset.state : "day";
  }
  async function draw() {
    const now = state();
    if (now === last) return;
    last = now;
    if (now !== "day" && !SHOWN.includes(now)) { box.hidden = true; return; }
    const reply = await fetch(box.dataset.track, { headers: { "X-Requested-With": "fetch" } });
    if (!reply.ok) { last = null; return; }
    const lines = await reply.json();
    box.hidden = lines.length === 0;
    if (!lines.length) return;
    map ||= window.tailraceMap(box);
    for (const layer of layers) layer.remove();
    layers = lines.map((line) => (line.length > 1
      ? L.polyline(line, { className: "ti-line", interactive: false })
      : L.circleMarker(line[0], { className: "ti-dot", radius: 3, interactive: false })).addTo(map));
    map.invalidateSize({ animate: false });
    map.fitBounds(L.latLngBounds(lines.flat()).pad(0.1), { maxZoom: 16, animate: false });
    box.dataset.drawn = String(lines.flat().length);
  }
  draw();
  document.body.addEventListener("htmx:afterSettle", draw);
});
