// The map of gatherings. It shows the gatherings of the list, on tiles or on a grid of degrees.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const box = document.getElementById("map");
  if (!box || !window.L) return;
  const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const map = L.map(box, {
    worldCopyJump: true, minZoom: 1, maxZoom: 19, zoomAnimation: !reducedMotion, fadeAnimation: !reducedMotion,
    markerZoomAnimation: !reducedMotion,
  });
  map.setView([25, 0], 1);  // Leaflet needs a view before markers are added
  map.attributionControl.setPrefix('<a href="https://leafletjs.com" rel="noopener">Leaflet</a>');
  L.control.scale({ imperial: false }).addTo(map);

  const STEPS = [90, 45, 30, 15, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001,
    0.0005, 0.0002, 0.0001];
  const Grid = L.GridLayer.extend({
    createTile(at) {
      const size = this.getTileSize();
      const tile = document.createElement("canvas");
      const density = window.devicePixelRatio || 1;
      [tile.width, tile.height] = [size.x * density, size.y * density];
      const pen = tile.getContext("2d");
      pen.scale(density, density);
      const colours = getComputedStyle(box);
      pen.strokeStyle = colours.getPropertyValue("--tr-line");
      pen.fillStyle = colours.getPropertyValue("--tr-quiet");
      pen.font = "11px system-ui, sans-serif";
      const corner = at.scaleBy(size);
      const [from, to] = [map.unproject(corner, at.z), map.unproject(corner.add(size), at.z)];
      const step = STEPS.findLast((degrees) => (degrees / (to.lng - from.lng)) * size.x >= 110) || STEPS[0];
      const digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
      const label = (number, plus, minus) =>
        `${Math.abs(number).toFixed(digits)}°${number > 0 ? plus : number < 0 ? minus : ""}`;
      const lines = (low, high) => {
        const degrees = [];
        for (let n = Math.ceil(low / step - 1e-9); n * step < high - 1e-12; n += 1) degrees.push(n * step);
        return degrees;
      };
      const x = (lon) => map.project([0, lon], at.z).x - corner.x;
      const y = (lat) => map.project([lat, 0], at.z).y - corner.y;
      // A neighbour's labels reach into this tile, so they are drawn here too.
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
          pen.fillText(`${label(lat, "N", "S")} ${label(east, "E", "W")}`, x(lon) + 3, y(lat) - 3);
        }
      }
      return tile;
    },
  });
  const { tiles, credit } = box.dataset;
  const background = tiles ? L.tileLayer(tiles, { maxZoom: 19, attribution: escapeHtml(credit) }) : new Grid();
  background.addTo(map);
  if (!tiles) {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => background.redraw());
  }

  function escapeHtml(text) {
    const holder = document.createElement("span");
    holder.textContent = text;
    return holder.innerHTML;
  }

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
    content.append(link, ` ${gathering.state}`);
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
      const label = `${gathering.count} photos, ${gathering.state}`;
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
