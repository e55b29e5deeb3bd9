// Ranges, ticks and the parts of SVG pictures that the samples and the curves share.

const SVG = "http://www.w3.org/2000/svg";

function svgElement(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// About `count` round numbers inside a range, and at least two: one alone tells nothing of the scale.
function ticks([low, high], count) {
  const rough = (high - low) / Math.max(1, count),
    power = 10 ** Math.floor(Math.log10(rough)),
    inside = (step) => Math.floor(high / step) - Math.ceil(low / step) + 1;
  const steps = [0.5, 1, 2, 5, 10].map((factor) => factor * power);
  let place = steps.findIndex((step) => step >= rough * 0.999);
  while (place > 0 && inside(steps[place]) < 2) place--;
  const step = steps[place],
    first = Math.ceil(low / step);
  return Array.from({ length: inside(step) }, (_, k) => Number(((first + k) * step).toPrecision(12)));
}

// The range of the numbers of those groups that are shown, with a margin.
function rangeOf(numbers) {
  let low = Infinity,
    high = -Infinity;
  for (let i = 0; i < N; i++) {
    if (!isShown(i)) continue;
    if (numbers[i] < low) low = numbers[i];
    if (numbers[i] > high) high = numbers[i];
  }
  const margin = 0.05 * (high - low || 1);
  return low > high ? [-1, 1] : [low - margin, high + margin];
}

// A box inside a picture and the ranges it shows, with the way from numbers to its pixels and back.
class Frame {
  constructor({ left, top, width, height }, x, y) {
    Object.assign(this, { left, top, width, height, x, y });
  }

  across(value) {
    return ((value - this.x[0]) / (this.x[1] - this.x[0])) * this.width;
  }
  down(value) {
    return ((this.y[1] - value) / (this.y[1] - this.y[0])) * this.height;
  }
  xAt(pixel) {
    return this.x[0] + (pixel / this.width) * (this.x[1] - this.x[0]);
  }
  yAt(pixel) {
    return this.y[1] - (pixel / this.height) * (this.y[1] - this.y[0]);
  }
}

const ruler = document.createElement("canvas").getContext("2d");
ruler.font = "12px system-ui, sans-serif";
const textWidth = (text) => ruler.measureText(text).width; // of the words in a picture
const cut = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

// Ticks, their numbers and the titles of both axes, as SVG elements. `yTicks`: values and words in place of numbers.
function axisParts(frame, xTitle, yTitle, { xFormat = String, yFormat = String, yTicks, grid = false } = {}) {
  const { left, top, width, height } = frame,
    parts = [],
    bottom = top + height,
    right = left + width;
  const add = (name, attributes, text) => parts.push(svgElement(name, attributes, text));
  const fitting = (title, size) => (textWidth(title) > size + 16 ? title.split(" (")[0] : title); // without percentages
  for (const value of ticks(frame.x, width / 90)) {
    const x = left + frame.across(value);
    add("line", { class: "tick", x1: x, x2: x, y1: grid ? top : bottom, y2: bottom + 4 });
    add("text", { class: "number", x, y: bottom + 17, "text-anchor": "middle" }, xFormat(value));
  }
  for (const [value, word] of yTicks ?? ticks(frame.y, height / 60).map((value) => [value, yFormat(value)])) {
    const y = top + frame.down(value);
    add("line", { class: "tick", x1: left - 4, x2: grid ? right : left, y1: y, y2: y });
    add("text", { class: "number", x: left - 7, y: y + 4, "text-anchor": "end" }, word);
  }
  add("rect", { class: "frame", x: left, y: top, width, height, fill: "none" });
  add("text", { class: "title", x: left + width / 2, y: bottom + 36, "text-anchor": "middle" }, fitting(xTitle, width));
  const middle = top + height / 2;
  add(
    "text",
    { class: "title", x: 15, y: middle, "text-anchor": "middle", transform: `rotate(-90 15 ${middle})` },
    fitting(yTitle, height),
  );
  return parts;
}
