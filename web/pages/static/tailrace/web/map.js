// `tailraceMap` creates the Leaflet map of a page in `box` and returns it. The background is tiles, if
// the box has `data-tiles` and `data-credit`, or the base map of this site, from `data-land` and
// `data-towns`.
"use strict";
window.tailraceMap = (box) => {
  const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const map = L.map(box, {
    worldCopyJump: true, minZoom: 1, maxZoom: 19, zoomAnimation: !reducedMotion, fadeAnimation: !reducedMotion,
    markerZoomAnimation: !reducedMotion,
  });
  map.setView([25, 0], 1);  // Leaflet needs a view before markers are added
  map.attributionControl.setPrefix('<a href="https://leafletjs.com" rel="noopener">Leaflet</a>');
  L.control.scale({ imperial: false }).addTo(map);

  const { tiles, credit } = box.dataset;
  const background = tiles
    ? L.tileLayer(tiles, { maxZoom: 19, attribution: escapeHtml(credit) })
    : window.tailraceBaseMap(map, box);
  background.addTo(map);

  function escapeHtml(text) {
    const holder = document.createElement("span");
    holder.textContent = text;
    return holder.innerHTML;
  }
  return map;
};
