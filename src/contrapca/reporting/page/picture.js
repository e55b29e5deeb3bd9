// A picture of the samples: points on a canvas; axes, arrows and marks in an SVG over it.

const MARGIN = { left: 58, right: 10, top: 10, bottom: 44 };
const ARROWS = 8;
const STRIP = 16; // characters of a name beside its strip
const LINE = 13; // pixels of a line of words

// With one component each group has a strip, whose name stands beside it.
const leftMargin = () =>
  d > 1 ? MARGIN.left : Math.max(...state.column.groups.map(({ name }) => textWidth(cut(name, STRIP)))) + 14;

// Values and names of the strips that a frame shows; with two components undefined, since there are none.
function stripNames({ y, height }) {
  if (d > 1) return undefined;
  const every = Math.ceil((LINE * (y[1] - y[0])) / height); // strips to a line of words
  return state.column.groups
    .map(({ name }, code) => [code, cut(name, STRIP)])
    .filter(([code]) => !state.hidden.has(code) && code > y[0] && code < y[1] && code % every === 0);
}

class Picture {
  constructor(root, step) {
    this.root = root;
    this.canvas = root.querySelector("canvas");
    this.svg = root.querySelector("svg");
    this.tooltip = root.querySelector(".tooltip");
    this.step = step;
    this.axes = d > 1 ? [0, 1] : [0];
    this.view = null; // the ranges that the reader has zoomed to; null shows all points
    this.mark = null; // the point under the pointer or the keyboard's cursor
    this.lasso = null; // corners, in pixels of the frame
    this.x = new Float64Array(N);
    this.y = d > 1 ? new Float64Array(N) : state.column.spread;
    this.image = { xs: new Int32Array(N), ys: new Int32Array(N) };
    this.place();
  }

  // Coordinates at the present gamma on the present axes.
  place() {
    positions.column(this.step, this.axes[0], this.x);
    if (d > 1) positions.column(this.step, this.axes[1], this.y);
    else this.y = state.column.spread;
  }

  show(step) {
    this.step = step;
    this.place();
    this.draw();
  }

  // The sizes and colours that a drawing needs; asking the browser for them in every step would take most of its time.
  measure() {
    const { root, canvas, svg, image } = this,
      wide = root.clientWidth,
      high = root.clientHeight,
      ratio = Math.min(window.devicePixelRatio || 1, 2),
      style = getComputedStyle(document.documentElement);
    this.box = null;
    if (wide < 100 || high < 100) return; // not on the screen
    const left = leftMargin();
    const box = {
      left,
      top: MARGIN.top,
      width: wide - left - MARGIN.right,
      height: high - MARGIN.top - MARGIN.bottom,
    };
    this.box = box;
    const across = (pixels) => `${(100 * pixels) / wide}%`,
      down = (pixels) => `${(100 * pixels) / high}%`;
    Object.assign(canvas.style, {
      left: across(box.left),
      top: down(box.top),
      width: across(box.width),
      height: down(box.height),
    });
    svg.setAttribute("viewBox", `0 0 ${wide} ${high}`);
    root.style.aspectRatio = `${wide} / ${high}`; // kept on paper, where the height follows from the width
    const width = Math.round(box.width * ratio),
      height = Math.round(box.height * ratio);
    if (image.width !== width || image.height !== height) {
      Object.assign(canvas, { width, height });
      const data = new ImageData(width, height);
      Object.assign(image, { width, height, ratio, data, pixels: new Uint32Array(data.data.buffer) });
    }
    for (const name of ["panel", "line", "soft"])
      image[name] = (0xff000000 | inkOf(parseColour(style.getPropertyValue(`--${name}`).trim()))) >>> 0;
  }

  draw() {
    if (!this.box) this.measure();
    if (!this.box) return;
    const view = this.view ?? [rangeOf(this.x), rangeOf(this.y)];
    this.frame = new Frame(this.box, ...view);
    this.drawPixels();
    this.svg.replaceChildren(...this.axisParts(), this.overlay());
    this.describe();
  }

  axisParts() {
    const [xTitle, yTitle] = this.titles();
    return axisParts(this.frame, xTitle, yTitle, { yTicks: stripNames(this.frame) });
  }

  titles() {
    return [axisTitle(this.step, this.axes[0]), d > 1 ? axisTitle(this.step, this.axes[1]) : ""];
  }

  drawPixels() {
    const { frame, image } = this,
      { width, height, ratio, pixels, xs, ys } = image;
    pixels.fill(image.panel);
    for (const value of ticks(frame.x, frame.width / 90)) {
      const x = Math.round(frame.across(value) * ratio);
      for (let y = 0; y < height && x >= 0 && x < width; y++)
        pixels[y * width + x] = value === 0 ? image.soft : image.line;
    }
    for (const value of d > 1 ? ticks(frame.y, frame.height / 60) : []) {
      const y = Math.round(frame.down(value) * ratio);
      if (y >= 0 && y < height) pixels.fill(value === 0 ? image.soft : image.line, y * width, (y + 1) * width);
    }
    const sx = width / (frame.x[1] - frame.x[0]),
      sy = height / (frame.y[1] - frame.y[0]);
    for (let i = 0; i < N; i++) {
      xs[i] = (this.x[i] - frame.x[0]) * sx;
      ys[i] = (frame.y[1] - this.y[i]) * sy;
    }
    drawPoints(image, pointRadius() * ratio);
    this.canvas.getContext("2d", { willReadFrequently: true }).putImageData(image.data, 0, 0);
  }

  // Arrows, the lasso and the mark of a point.
  overlay() {
    const { frame } = this,
      layer = svgElement("g", { transform: `translate(${frame.left} ${frame.top})` });
    if (state.arrows) layer.append(...arrowParts(this));
    if (this.lasso)
      layer.append(
        svgElement("path", { class: "lasso", d: `M${this.lasso.map((corner) => corner.join(" ")).join("L")}Z` }),
      );
    if (this.mark !== null && isShown(this.mark)) {
      const [cx, cy] = this.pixel(this.mark);
      layer.append(svgElement("circle", { class: "mark", cx, cy, r: pointRadius() + 5 }));
    }
    return layer;
  }

  // Marks without points: after the pointer has moved.
  drawOverlay() {
    this.svg.lastElementChild?.replaceWith(this.overlay());
  }

  pixel(i) {
    return [this.frame.across(this.x[i]), this.frame.down(this.y[i])];
  }

  // Whether a point can be seen.
  inView(i) {
    const { x, y } = this.frame;
    return isShown(i) && this.x[i] >= x[0] && this.x[i] <= x[1] && this.y[i] >= y[0] && this.y[i] <= y[1];
  }

  zoom(factor) {
    const about = ([low, high]) => {
      const middle = (low + high) / 2,
        half = ((high - low) / 2) * factor;
      return [middle - half, middle + half];
    };
    this.view = [about(this.frame.x), about(this.frame.y)];
    this.draw();
  }

  unzoom() {
    this.view = null;
    this.draw();
  }

  describe() {
    const shown = state.column.groups
      .filter((_, code) => !state.hidden.has(code))
      .map(({ name, members }) => `${members.length.toLocaleString("en")} ${name}`);
    const [x, y] = this.titles();
    const listed = shown.slice(0, 8).join(", ") + (shown.length > 8 ? ` and ${shown.length - 8} more groups` : "");
    const axes = `Across: ${x}.${y && ` Up: ${y}.`}`;
    const at = this.step === path.start ? "" : ` at ${gammaText(this.step)}`;
    this.root.setAttribute("aria-label", `Scatter plot${at}. ${axes} Points: ${listed}.`);
  }
}

const pointRadius = () => (N > 20000 ? 1.6 : N > 5000 ? 2.2 : N > 1000 ? 3 : 4);

// The features with the longest loadings on both axes.
function longestLoadings(picture) {
  const [x, y] = picture.axes.map((axis) => loadings.column(picture.step, axis));
  const order = Array.from(x.keys(), (j) => [Math.hypot(x[j], y[j]), j])
    .sort((a, b) => b[0] - a[0])
    .slice(0, ARROWS);
  return order.filter(([length]) => length > 0).map(([, j]) => ({ name: featureNames[j], x: x[j], y: y[j] }));
}

function arrowParts(picture) {
  const { frame } = picture,
    found = longestLoadings(picture),
    parts = [],
    taken = []; // by names
  const x0 = Math.max(0, Math.min(frame.width, frame.across(0))),
    y0 = Math.max(0, Math.min(frame.height, frame.down(0)));
  // The largest factor with which every tip stays inside the frame, with room for its name.
  const room = (delta, at, size) => (delta > 0 ? size - 18 - at : at - 18) / Math.abs(delta || 1e-300);
  const factor = Math.max(
    0,
    Math.min(...found.map(({ x, y }) => Math.min(room(x, x0, frame.width), room(-y, y0, frame.height)))),
  );
  for (const { name, x, y } of found) {
    const dx = x * factor,
      dy = -y * factor,
      length = Math.hypot(dx, dy) || 1,
      [ux, uy] = [dx / length, dy / length];
    const tip = [x0 + dx, y0 + dy],
      wing = (side) => [tip[0] - 8 * ux + side * 4 * uy, tip[1] - 8 * uy - side * 4 * ux];
    parts.push(
      svgElement("path", {
        class: "arrow",
        d: `M${x0} ${y0}L${tip.join(" ")}M${wing(1).join(" ")}L${tip.join(" ")}L${wing(-1).join(" ")}`,
      }),
    );
    const text = cut(name, 24),
      place = freePlace(tip, uy < 0, textWidth(text), frame, taken);
    if (!place) continue; // a longer arrow's name is there
    taken.push(place);
    parts.push(svgElement("text", { class: "arrow-name", x: place.left, y: place.bottom - 3 }, text));
  }
  return parts;
}

// A box for a name near the tip of an arrow, inside the frame and apart from others; undefined if there is none.
function freePlace([x, y], up, width, frame, taken) {
  const above = y - 3,
    below = y + LINE + 3;
  for (const bottom of up ? [above, below] : [below, above])
    for (const left of x + 5 + width > frame.width ? [x - 5 - width, x + 5] : [x + 5, x - 5 - width]) {
      const box = {
        left: Math.max(2, Math.min(frame.width - 2 - width, left)),
        bottom: Math.max(LINE, Math.min(frame.height - 1, bottom)),
      };
      box.right = box.left + width;
      box.top = box.bottom - LINE;
      const meets = (other) =>
        box.left < other.right && other.left < box.right && box.top < other.bottom && other.top < box.bottom;
      if (!taken.some(meets)) return box;
    }
}
