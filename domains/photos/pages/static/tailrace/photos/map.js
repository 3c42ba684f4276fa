// The map of gatherings. It shows the gatherings that the list contains.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const box = document.getElementById("map");
  if (!box || !window.L) return;
  const map = window.tailraceMap(box);

  const shown = new Map();
  let touched = false;
  for (const name of ["pointerdown", "wheel", "keydown"]) {
    box.addEventListener(name, () => { touched = true; }, { passive: true });
  }
  function pin(gathering) {
    const count = document.createElement("span");
    count.textContent = gathering.count;
    return L.divIcon({ html: count, className: `ph-pin ph-${gathering.state.toLowerCase()}`, iconSize: null });
  }
  function popup(gathering) {
    const content = document.createElement("p");
    const link = document.createElement("a");
    link.href = gathering.href;
    link.textContent = `${gathering.count} photos`;
    content.append(link, ` ${gathering.state.toLowerCase()}`);
    return content;
  }
  function draw() {
    const rows = [...document.querySelectorAll("[data-gathering]")].map((row) => row.dataset);
    const ids = new Set(rows.map((gathering) => gathering.gathering));
    for (const [id, layers] of shown) {
      if (!ids.has(id)) { layers.marker.remove(); layers.circle.remove(); shown.delete(id); }
    }
    for (const gathering of rows) {
      const at = [Number(gathering.lat), Number(gathering.lon)];
      const radius = Math.max(Number(gathering.radius), 5);
      const label = `${gathering.count} photos, ${gathering.state.toLowerCase()}`;
      let layers = shown.get(gathering.gathering);
      if (!layers) {
        layers = {
          circle: L.circle(at, { radius, className: "ph-reach", interactive: false }).addTo(map),
          marker: L.marker(at, { icon: pin(gathering), keyboard: true }).addTo(map).bindPopup(popup(gathering)),
        };
        shown.set(gathering.gathering, layers);
      } else {
        layers.marker.setLatLng(at);
        layers.circle.setLatLng(at).setRadius(radius);
        if (layers.label === label) continue;
        layers.marker.setIcon(pin(gathering)).setPopupContent(popup(gathering));
      }
      layers.label = label;
      layers.marker.getElement().setAttribute("aria-label", label);
    }
    if (!touched) fit();
  }
  function fit() {
    const points = [...shown.values()].map((layers) => layers.marker.getLatLng());
    if (points.length) map.fitBounds(L.latLngBounds(points).pad(0.2), { maxZoom: 16, animate: false });
  }
  draw();
  document.body.addEventListener("htmx:afterSettle", draw);
});
