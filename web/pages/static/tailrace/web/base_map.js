// The background of maps without tiles: land, borders, towns and a grid of degrees. Land and towns
// are two files of this site, made by scripts/make_base_map.py, so no other server is needed.
"use strict";
window.tailraceBaseMap = (map, box) => {
  const LARGEST_ERROR = 10;  // zoom from which the coasts are too coarse to tell land from sea
  const TOWNS_FROM = 3;  // zoom
  const SIGNS_FROM = 7;
  const STEPS = [90, 45, 30, 15, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001,
    0.0005, 0.0002, 0.0001];
  const FONT = "12px system-ui, sans-serif";
  let land = [];
  let borders = [];
  let towns = [];
  let chosen = new Map();  // zoom: towns with a label

  // Positions are in the unit square of the Mercator projection; a zoom level only scales them.
  const unitX = (lon) => lon / 360 + 0.5;
  const unitY = (lat) => {
    const sine = Math.sin((Math.max(-85.0511, Math.min(85.0511, lat)) * Math.PI) / 180);
    return 0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI);
  };

  function decode(text, scale) {
    const points = [];
    let at = 0;
    let [lon, lat] = [0, 0];
    const number = () => {
      let [value, shift, piece] = [0, 0, 0];
      do {
        piece = text.charCodeAt(at++) - 63;
        value |= (piece & 31) << shift;
        shift += 5;
      } while (piece >= 32);
      return value & 1 ? ~(value >> 1) : value >> 1;
    };
    while (at < text.length) {
      lon += number();
      lat += number();
      points.push([unitX(lon / scale), unitY(lat / scale)]);
    }
    return points;
  }
  function bounded(points) {
    const [xs, ys] = [points.map((point) => point[0]), points.map((point) => point[1])];
    return { points, left: Math.min(...xs), right: Math.max(...xs), top: Math.min(...ys), bottom: Math.max(...ys) };
  }
  function read(file) {
    const arcs = file.arcs.map((text) => decode(text, file.scale));
    const along = (arc) => (arc < 0 ? [...arcs[~arc]].reverse() : arcs[arc]);
    land = file.land.map((ring) => bounded(ring.flatMap((arc) => along(arc).slice(1))));
    borders = file.borders.map((arc) => bounded(arcs[arc]));
  }

  function townsAt(zoom) {
    if (chosen.has(zoom)) return chosen.get(zoom);
    const size = 256 * 2 ** zoom;
    const [wide, high] = zoom < 5 ? [150, 90] : [130, 60];
    const taken = new Map();  // the labelled town of each cell
    const shown = [];
    for (const [name, lat, lon] of towns) {
      const [x, y] = [unitX(lon / 1000) * size, unitY(lat / 1000) * size];
      const [column, row] = [Math.floor(x / wide), Math.floor(y / high)];
      const near = [-1, 0, 1].flatMap((dx) => [-1, 0, 1].map((dy) => taken.get(`${column + dx} ${row + dy}`)));
      if (near.some((other) => other && Math.abs(other.x - x) < wide && Math.abs(other.y - y) < high)) continue;
      const town = { name, x, y };
      taken.set(`${column} ${row}`, town);
      shown.push(town);
    }
    chosen.set(zoom, shown);
    return shown;
  }

  // A canvas does not understand the variables themselves: they are `light-dark(…)`.
  const probe = document.createElement("span");
  probe.hidden = true;
  box.append(probe);
  function colours() {
    const known = new Map();
    return (name) => {
      if (!known.has(name)) {
        probe.style.color = `var(--tr-${name})`;
        known.set(name, getComputedStyle(probe).color);
      }
      return known.get(name);
    };
  }

  const Base = L.GridLayer.extend({
    options: {
      maxZoom: 19,
      attribution: '<a href="https://www.naturalearthdata.com" rel="noopener">Natural Earth</a>, '
        + '<a href="https://www.geonames.org" rel="noopener">GeoNames</a>',
    },
    createTile(at) {
      const size = this.getTileSize();
      const tile = document.createElement("canvas");
      const density = window.devicePixelRatio || 1;
      [tile.width, tile.height] = [size.x * density, size.y * density];
      const pen = tile.getContext("2d");
      pen.scale(density, density);
      const colour = colours();
      const corner = at.scaleBy(size);
      const world = 256 * 2 ** at.z;
      const shift = Math.floor(at.x / 2 ** at.z) * world - corner.x;  // x of this copy of the world
      drawLand(pen, at.z, world, shift, corner, size, colour);
      drawGrid(pen, at.z, shift, corner, size, colour);
      drawTowns(pen, at.z, shift, corner, size, colour);
      return tile;
    },
  });

  function drawLand(pen, zoom, world, shift, corner, size, colour) {
    const coarse = zoom >= LARGEST_ERROR;
    pen.fillStyle = colour(coarse || !land.length ? "card" : "info-bg");
    pen.fillRect(0, 0, size.x, size.y);
    const seen = (shape) => shape.right * world + shift > -5 && shape.left * world + shift < size.x + 5
      && shape.bottom * world - corner.y > -5 && shape.top * world - corner.y < size.y + 5;
    const place = ([x, y]) => [x * world + shift, y * world - corner.y];
    pen.lineWidth = 1;
    const rings = land.filter(seen);
    if (!coarse) {
      pen.beginPath();
      for (const ring of rings) {
        ring.points.forEach((point, number) => pen[number ? "lineTo" : "moveTo"](...place(point)));
        pen.closePath();
      }
      pen.fillStyle = colour("card");
      pen.fill("evenodd");
    }
    pen.strokeStyle = colour("track");
    pen.setLineDash(coarse ? [6, 6] : []);
    for (const ring of rings) drawLine(pen, [...ring.points, ring.points[0]].map(place), size);
    pen.setLineDash([2, 3]);
    pen.strokeStyle = colour("quiet");
    for (const border of borders.filter(seen)) drawLine(pen, border.points.map(place), size);
    pen.setLineDash([]);
  }

  // Draws the parts of a line that reach into the tile. A browser draws all dashes of a line, and that
  // around a continent has millions. The offset lets dashes go on in the next tile.
  function drawLine(pen, points, size) {
    let [far, drawing] = [0, false];
    for (let number = 1; number < points.length; number += 1) {
      const [[x, y], [nextX, nextY]] = [points[number - 1], points[number]];
      const reaches = Math.max(x, nextX) > -5 && Math.min(x, nextX) < size.x + 5
        && Math.max(y, nextY) > -5 && Math.min(y, nextY) < size.y + 5;
      if (reaches && !drawing) {
        pen.beginPath();
        pen.lineDashOffset = far;
        pen.moveTo(x, y);
      }
      if (reaches) pen.lineTo(nextX, nextY);
      else if (drawing) pen.stroke();
      drawing = reaches;
      far += Math.hypot(nextX - x, nextY - y);
    }
    if (drawing) pen.stroke();
    pen.lineDashOffset = 0;
  }

  function drawGrid(pen, zoom, shift, corner, size, colour) {
    const [from, to] = [map.unproject(corner, zoom), map.unproject(corner.add(size), zoom)];
    const step = STEPS.findLast((degrees) => (degrees / (to.lng - from.lng)) * size.x >= 110) || STEPS[0];
    const digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
    const label = (number, plus, minus) =>
      `${Math.abs(number).toFixed(digits)}°${number > 0 ? plus : number < 0 ? minus : ""}`;
    const lines = (low, high) => {
      const degrees = [];
      for (let n = Math.ceil(low / step - 1e-9); n * step < high - 1e-12; n += 1) degrees.push(n * step);
      return degrees;
    };
    const x = (lon) => map.project([0, lon], zoom).x - corner.x;
    const y = (lat) => map.project([lat, 0], zoom).y - corner.y;
    // A neighbour's labels reach into this tile, so they are drawn here too.
    const beside = map.unproject(corner.add([-150, size.y + 15]), zoom);
    const across = lines(beside.lat, from.lat).filter((lat) => Math.abs(lat) <= 85);
    const along = lines(beside.lng, to.lng);
    pen.strokeStyle = colour("line");
    pen.beginPath();
    for (const lon of along) { pen.moveTo(x(lon), 0); pen.lineTo(x(lon), size.y); }
    for (const lat of across) { pen.moveTo(0, y(lat)); pen.lineTo(size.x, y(lat)); }
    pen.stroke();
    const named = zoom < TOWNS_FROM ? [] : townsAt(zoom).map((town) => [town.x + shift, town.y - corner.y]);
    const covered = (left, bottom) => named.some(([east, south]) => east > left - 130 && east < left + 100
      && south > bottom - 18 && south < bottom + 10);
    pen.font = "10px system-ui, sans-serif";
    pen.fillStyle = colour("quiet");
    for (const lon of along) {
      for (const lat of across) {
        if (covered(x(lon), y(lat))) continue;
        const east = ((lon + 540) % 360 + 360) % 360 - 180;
        pen.fillText(`${label(lat, "N", "S")} ${label(east, "E", "W")}`, x(lon) + 3, y(lat) - 3);
      }
    }
  }

  function drawTowns(pen, zoom, shift, corner, size, colour) {
    if (zoom < TOWNS_FROM) return;
    const all = townsAt(zoom);
    pen.font = FONT;
    pen.lineJoin = "round";
    for (const town of all) {
      const [x, y] = [town.x + shift, town.y - corner.y];
      if (x < -150 || x > size.x + 10 || y < -15 || y > size.y + 15) continue;
      pen.fillStyle = colour("quiet");
      pen.beginPath();
      pen.arc(x, y, 2.5, 0, 2 * Math.PI);
      pen.fill();
      pen.strokeStyle = colour("card");
      pen.lineWidth = 3;
      pen.strokeText(town.name, x + 5, y + 4);
      pen.fillStyle = colour("text");
      pen.fillText(town.name, x + 5, y + 4);
    }
    pen.lineWidth = 1;
  }

  // If the view shows at most two towns, signs at its edges point to the nearest towns outside.
  const signs = document.createElement("div");
  signs.className = "tr-signs";
  signs.ariaHidden = "true";
  box.append(signs);
  const ARROWS = ["→", "↘", "↓", "↙", "←", "↖", "↑", "↗"];
  function pointToTowns() {
    signs.replaceChildren();
    const [size, centre, zoom] = [map.getSize(), map.getCenter().wrap(), map.getZoom()];
    if (zoom < SIGNS_FROM) return;
    const world = 256 * 2 ** zoom;
    const [x, y] = [unitX(centre.lng) * world, unitY(centre.lat) * world];
    const away = towns.map(([name, lat, lon]) => {
      const [dx, dy] = [unitX(lon / 1000) * world - x, unitY(lat / 1000) * world - y];
      return { name, lat, lon, dx, dy, far: Math.hypot(dx, dy) };
    });
    const outside = away.filter(({ dx, dy }) => Math.abs(dx) > size.x / 2 - 40 || Math.abs(dy) > size.y / 2 - 10);
    if (away.length - outside.length > 2) return;
    const shown = [];
    for (const town of outside.sort((one, other) => one.far - other.far)) {
      const metres = map.distance(centre, [town.lat / 1000, town.lon / 1000]);
      if (shown.length === (size.x < 500 ? 2 : 4) || metres > 400_000) break;
      const angle = Math.atan2(town.dy, town.dx);
      const apart = (other) => Math.abs(Math.atan2(Math.sin(other - angle), Math.cos(other - angle)));
      if (shown.some((other) => apart(other) < 0.8)) continue;
      shown.push(angle);
      const sign = document.createElement("span");
      const arrow = ARROWS[(Math.round(angle / (Math.PI / 4)) + 8) % 8];
      sign.textContent = `${arrow} ${town.name} ${Math.round(metres / 1000)} km`;
      // The point at the edge in that direction, inside of the zoom buttons and the attribution.
      const [halfX, halfY] = [size.x / 2 - 90, size.y / 2 - 36];
      const along = Math.min(halfX / Math.abs(Math.cos(angle)), halfY / Math.abs(Math.sin(angle)));
      sign.style.left = `${size.x / 2 + along * Math.cos(angle)}px`;
      sign.style.top = `${size.y / 2 + along * Math.sin(angle)}px`;
      signs.append(sign);
    }
  }
  map.on("moveend resize", pointToTowns);

  const layer = new Base();
  async function load(address, keep) {
    const reply = await fetch(address);
    if (!reply.ok) throw new Error(String(reply.status));
    keep(await reply.json());
  }
  // If a file cannot be loaded, the grid is still drawn.
  Promise.allSettled([
    load(box.dataset.land, read),
    load(box.dataset.towns, (file) => { towns = file.towns; chosen = new Map(); }),
  ]).then((results) => {
    box.dataset.base = String(results.filter((result) => result.status === "fulfilled").length);
    layer.redraw();
    pointToTowns();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => layer.redraw());
  return layer;
};
