// The map of gatherings: it shows what the list says, on tiles if there are any, else on a grid.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const box = document.getElementById("map");
  if (!box || !window.L) return;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const map = L.map(box, {
    worldCopyJump: true, minZoom: 1, maxZoom: 19, zoomAnimation: !still, fadeAnimation: !still,
    markerZoomAnimation: !still,
  });
  map.setView([25, 0], 1);  // nothing can be put on a map that looks nowhere
  map.attributionControl.setPrefix('<a href="https://leafletjs.com" rel="noopener">Leaflet</a>');
  L.control.scale({ imperial: false }).addTo(map);

  const STEPS = [90, 45, 30, 15, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001,
    0.0005, 0.0002, 0.0001];
  const Grid = L.GridLayer.extend({
    createTile(at) {
      const size = this.getTileSize();
      const tile = document.createElement("canvas");
      const dense = window.devicePixelRatio || 1;
      [tile.width, tile.height] = [size.x * dense, size.y * dense];
      const pen = tile.getContext("2d");
      pen.scale(dense, dense);
      const colours = getComputedStyle(box);
      pen.strokeStyle = colours.getPropertyValue("--tr-line");
      pen.fillStyle = colours.getPropertyValue("--tr-quiet");
      pen.font = "11px system-ui, sans-serif";
      const corner = at.scaleBy(size);
      const [from, to] = [map.unproject(corner, at.z), map.unproject(corner.add(size), at.z)];
      const step = STEPS.findLast((one) => (one / (to.lng - from.lng)) * size.x >= 110) || STEPS[0];
      const places = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
      const words = (number, plus, minus) =>
        `${Math.abs(number).toFixed(places)}°${number > 0 ? plus : number < 0 ? minus : ""}`;
      const lines = (low, high) => {
        const found = [];
        for (let n = Math.ceil(low / step - 1e-9); n * step < high - 1e-12; n += 1) found.push(n * step);
        return found;
      };
      const x = (lon) => map.project([0, lon], at.z).x - corner.x;
      const y = (lat) => map.project([lat, 0], at.z).y - corner.y;
      // What a neighbour writes reaches into this tile, so it is written here, too.
      const beside = map.unproject(corner.add([-150, size.y + 15]), at.z);
      const across = lines(beside.lat, from.lat).filter((lat) => Math.abs(lat) <= 85);
      const along = lines(beside.lng, to.lng);
      pen.beginPath();
      for (const lon of along) { pen.moveTo(x(lon), 0); pen.lineTo(x(lon), size.y); }
      for (const lat of across) { pen.moveTo(0, y(lat)); pen.lineTo(size.x, y(lat)); }
      pen.stroke();
      for (const lon of along) {
        for (const lat of across) {
          const east = ((lon + 540) % 360 + 360) % 360 - 180;
          pen.fillText(`${words(lat, "N", "S")} ${words(east, "E", "W")}`, x(lon) + 3, y(lat) - 3);
        }
      }
      return tile;
    },
  });
  const { tiles, credit } = box.dataset;
  const ground = tiles ? L.tileLayer(tiles, { maxZoom: 19, attribution: safe(credit) }) : new Grid();
  ground.addTo(map);
  if (!tiles) {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => ground.redraw());
  }

  function safe(text) {
    const holder = document.createElement("span");
    holder.textContent = text;
    return holder.innerHTML;
  }

  const shown = new Map();
  let touched = false;
  for (const name of ["pointerdown", "wheel", "keydown"]) {
    box.addEventListener(name, () => { touched = true; }, { passive: true });
  }
  function pin(one) {
    const face = document.createElement("span");
    face.textContent = one.count;
    return L.divIcon({ html: face, className: `ph-pin ph-${one.state.toLowerCase()}`, iconSize: null });
  }
  function bubble(one) {
    const inside = document.createElement("p");
    const link = document.createElement("a");
    link.href = one.href;
    link.textContent = `${one.count} photos`;
    inside.append(link, ` ${one.state}`);
    return inside;
  }
  function draw() {
    const lines = [...document.querySelectorAll("[data-gathering]")];
    const now = new Set(lines.map((line) => line.dataset.gathering));
    for (const [id, layers] of shown) {
      if (!now.has(id)) { layers.pin.remove(); layers.reach.remove(); shown.delete(id); }
    }
    for (const line of lines) {
      const one = line.dataset;
      const at = [Number(one.lat), Number(one.lon)];
      const radius = Math.max(Number(one.radius), 5);
      const known = shown.get(one.gathering);
      const said = `${one.count} ${one.state}`;
      if (known) {
        known.pin.setLatLng(at);
        known.reach.setLatLng(at).setRadius(radius);
        if (known.said === said) continue;
        known.pin.setIcon(pin(one)).setPopupContent(bubble(one));
        known.said = said;
        name(known.pin, one);
        continue;
      }
      const reach = L.circle(at, { radius, className: "ph-reach", interactive: false }).addTo(map);
      const mark = L.marker(at, { icon: pin(one), keyboard: true }).addTo(map).bindPopup(bubble(one));
      name(mark, one);
      shown.set(one.gathering, { pin: mark, reach, said });
    }
    if (!touched) fit();
  }
  function name(mark, one) {
    mark.getElement().setAttribute("aria-label", `${one.count} photos, ${one.state}`);
  }
  function fit() {
    const points = [...shown.values()].map((one) => one.pin.getLatLng());
    if (points.length) map.fitBounds(L.latLngBounds(points).pad(0.2), { maxZoom: 16, animate: false });
  }
  draw();
  document.body.addEventListener("htmx:afterSettle", draw);
});
