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
const look = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// The colour of a point: its shade on the scale, or that of its group.
const colourOf = (i) => {
  const shade = state.scale ? state.scale.shades[i] : 255;
  return shade < 255 ? SHADES[shade] : groups[groupOf[i]].rgb;
};
groups.forEach((group) => {
  group.rgb = parseColour(group.colour);
});

// How much of each pixel of a small square a symbol covers, 0 to 256.
const stamps = new Map();
function stampOf(symbol, radius) {
  const key = `${symbol} ${radius}`;
  if (!stamps.has(key)) {
    const half = Math.ceil(1.3 * radius),
      side = 2 * half + 1,
      cover = new Uint16Array(side * side);
    for (let y = -half, at = 0; y <= half; y++) {
      for (let x = -half; x <= half; x++) {
        cover[at++] = Math.round(
          256 * Math.max(0, Math.min(1, 0.5 + radius * SYMBOLS[symbol](x / radius, y / radius))),
        );
      }
    }
    stamps.set(key, { half, side, cover });
  }
  return stamps.get(key);
}

// Blend one symbol into an image (32-bit pixels, width x height) about the pixel (x, y).
function stamp(pixels, width, height, { half, side, cover }, x, y, [r, g, b], opacity) {
  const left = x - half,
    top = y - half;
  for (let j = Math.max(0, -top), end = Math.min(side, height - top); j < end; j++) {
    for (let i = Math.max(0, -left), last = Math.min(side, width - left); i < last; i++) {
      const share = cover[j * side + i];
      if (share === 0) continue;
      const at = (top + j) * width + left + i,
        old = pixels[at],
        a = share * opacity,
        keep = 256 - a;
      pixels[at] =
        0xff000000 |
        (((((old >>> 16) & 255) * keep + b * a) >>> 8) << 16) |
        (((((old >>> 8) & 255) * keep + g * a) >>> 8) << 8) |
        (((old & 255) * keep + r * a) >>> 8);
    }
  }
}

// Draw all points that are shown, at the pixels (xs, ys); those that are not selected are pale if others are.
function drawPoints(pixels, width, height, xs, ys, radius) {
  const some = state.selected.includes(1),
    passes = some
      ? [
          [0, 0.18],
          [1, 1],
        ]
      : [[0, 0.8]];
  for (const [selected, opacity] of passes) {
    groups.forEach(({ symbol, from, to }, code) => {
      if (state.hidden.has(code)) return;
      const mask = stampOf(symbol, radius);
      for (let i = from; i < to; i++) {
        if (state.selected[i] === selected) stamp(pixels, width, height, mask, xs[i], ys[i], colourOf(i), opacity);
      }
    });
  }
}
