// Points as pixels and as shapes. Pixels are blended here one by one: 50,000 points take a few milliseconds on any
// computer, with or without a graphics processor.

// How far inside a symbol of radius 1 a place is; negative outside.
const SYMBOLS = {
  circle: (x, y) => 1 - Math.hypot(x, y),
  square: (x, y) => 0.88 - Math.max(Math.abs(x), Math.abs(y)),
  triangle: (x, y) => Math.min(0.8 - y, (y + 1.2 - 2 * Math.abs(x)) / Math.sqrt(5)),
  ring: (x, y) => 0.28 - Math.abs(0.78 - Math.hypot(x, y)),
  cross: (x, y) =>
    Math.min(1.3 - Math.abs(x) - Math.abs(y), 0.26 - Math.min(Math.abs(x - y), Math.abs(x + y)) / Math.SQRT2),
};
// The same for SVG, with radius 1 about (0, 0).
const OUTLINES = {
  circle: "M-1 0A1 1 0 1 1 1 0A1 1 0 1 1-1 0Z",
  square: "M-.88-.88H.88V.88H-.88Z",
  triangle: "M0-1.2L1 .8H-1Z",
  ring: "M-1 0A1 1 0 1 1 1 0A1 1 0 1 1-1 0ZM-.5 0A.5 .5 0 1 0 .5 0A.5 .5 0 1 0-.5 0Z",
  cross: "M-.9-.5L-.5-.9L0-.4L.5-.9L.9-.5L.4 0L.9 .5L.5 .9L0 .4L-.5 .9L-.9 .5L-.4 0Z",
};

// From blue through green to orange: safe for colour-blind readers, in light and dark mode; grey is for controls.
const SCALE = [
  [30, 80, 200],
  [0, 158, 115],
  [240, 150, 0],
];
const SHADES = Array.from({ length: 255 }, (_, shade) => {
  const t = shade / 127,
    from = t < 1 ? 0 : 1;
  return SCALE[from].map((c, j) => Math.round(c + (t - from) * (SCALE[from + 1][j] - c)));
});
const css = ([r, g, b]) => `rgb(${r},${g},${b})`;
const parseColour = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16)); // #rrggbb
const inkOf = ([r, g, b]) => (b << 16) | (g << 8) | r; // as in the pixels of an image
const SHADE_INKS = Int32Array.from(SHADES, inkOf);

// The colour of a point: its shade on the scale, or that of its group.
const colourOf = (i) => {
  const shade = state.scale ? state.scale.shades[i] : 255;
  return shade < 255 ? SHADES[shade] : state.column.groups[state.column.groupOf[i]].rgb;
};
for (const group of columns.flatMap((column) => column.groups)) {
  group.rgb = parseColour(group.colour);
  group.ink = inkOf(group.rgb);
}

// The pixels that a symbol touches: their places (dx, dy) from its middle, and how much of each it covers, 1 to 256.
const stamps = new Map();
function stampOf(symbol, radius) {
  const key = `${symbol} ${radius}`;
  if (!stamps.has(key)) {
    const half = Math.ceil(1.3 * radius),
      found = { half, dx: [], dy: [], cover: [] };
    for (let y = -half; y <= half; y++) {
      for (let x = -half; x <= half; x++) {
        const inside = 0.5 + radius * SYMBOLS[symbol](x / radius, y / radius),
          cover = Math.round(256 * Math.max(0, Math.min(1, inside)));
        if (cover === 0) continue;
        found.dx.push(x);
        found.dy.push(y);
        found.cover.push(cover);
      }
    }
    stamps.set(key, found);
  }
  return stamps.get(key);
}

// Draw all points that are shown into an image (32-bit pixels, width x height), at its pixels (xs, ys); those that are
// not selected are pale if others are.
function drawPoints(image, radius) {
  const passes = state.selected.includes(1)
    ? [
        [0, 0.18],
        [1, 1],
      ]
    : [[0, 0.8]];
  for (const [selected, opacity] of passes) {
    state.column.groups.forEach((group, code) => {
      if (!state.hidden.has(code)) drawGroup(image, group, stampOf(group.symbol, radius), selected, opacity);
    });
  }
}

function drawGroup({ pixels, width, height, xs, ys }, { members, ink }, { half, dx, dy, cover }, selected, opacity) {
  const offsets = Int32Array.from(dx, (x, k) => dy[k] * width + x),
    weights = Int32Array.from(cover, (share) => share * opacity),
    shades = state.scale?.shades;
  for (const i of members) {
    const x = xs[i],
      y = ys[i];
    if (state.selected[i] !== selected || x < -half || y < -half || x >= width + half || y >= height + half) continue;
    const colour = shades && shades[i] < 255 ? SHADE_INKS[shades[i]] : ink,
      redBlue = colour & 0xff00ff,
      green = colour & 0xff00,
      middle = y * width + x,
      whole = x >= half && y >= half && x < width - half && y < height - half;
    for (let k = 0; k < offsets.length; k++) {
      if (!whole && (x + dx[k] < 0 || y + dy[k] < 0 || x + dx[k] >= width || y + dy[k] >= height)) continue;
      const at = middle + offsets[k],
        old = pixels[at],
        weight = weights[k],
        keep = 256 - weight;
      // Red and blue in one product: each has room for 8 bits more.
      pixels[at] =
        0xff000000 |
        (((Math.imul(old & 0xff00ff, keep) + Math.imul(redBlue, weight)) >>> 8) & 0xff00ff) |
        (((Math.imul(old & 0xff00, keep) + Math.imul(green, weight)) >>> 8) & 0xff00);
    }
  }
}
