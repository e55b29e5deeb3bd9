// What the page knows: numbers at every gamma, groups and names of points, and how numbers are written.

const element = (id) => document.getElementById(id);
const onClick = (id, action) => element(id).addEventListener("click", action);
const read = (id) => JSON.parse(element(id).textContent);
const summary = read("summary"),
  points = read("points");
const { path, model, words } = summary,
  d = model.n_components,
  N = points.positions.n;

function bytes(text) {
  const raw = atob(text),
    result = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) result[i] = raw.charCodeAt(i);
  return result;
}

// A table for every gamma: scores (n x rank) times maps (gammas x rank x d).
class Tables {
  constructor(packed) {
    this.n = packed.n;
    this.rank = packed.rank;
    this.scores = new (packed.bytes === 4 ? Float32Array : Float64Array)(bytes(packed.scores).buffer);
    this.maps = new Float64Array(bytes(packed.maps).buffer);
  }

  // One column of the table at a gamma, in a new array or in one that is given.
  column(g, axis, result = new Float64Array(this.n)) {
    const { n, rank, scores } = this,
      map = new Float64Array(rank);
    for (let j = 0; j < rank; j++) map[j] = this.maps[(g * rank + j) * d + axis];
    for (let i = 0, at = 0; i < n; i++) {
      let sum = 0;
      for (let j = 0; j < rank; j++) sum += scores[at++] * map[j];
      result[i] = sum;
    }
    return result;
  }
}

const positions = new Tables(points.positions),
  loadings = new Tables(points.loadings);
const featureNames = points.loadings.features;
const rowNumbers = new Uint32Array(bytes(points.rows).buffer);

// Something known of the samples: the groups of a legend, the text of each sample, and perhaps numbers.
class Column {
  constructor({ name, heading, is_dose, entries, codes, numbers, texts }) {
    Object.assign(this, { name, heading, isDose: is_dose, groupOf: bytes(codes) });
    this.numbers = numbers && new Float64Array(bytes(numbers).buffer); // of all points; NaN where it is not known
    const Codes = texts && texts.names.length <= 256 ? Uint8Array : Uint16Array;
    this.texts = texts && { names: texts.names, codes: new Codes(bytes(texts.codes).buffer) };
    const members = entries.map(() => []);
    this.groupOf.forEach((code, i) => members[code].push(i));
    this.groups = entries.map((group, code) => ({ ...group, members: members[code] }));
    // With one component the height has no meaning: groups in rows, points spread by a fixed pattern.
    this.spread = Float64Array.from(this.groupOf, (code, i) => code + ((i * 0.618034) % 1) * 0.7 - 0.35);
  }

  textOf(i) {
    if (this.texts) return this.texts.names[this.texts.codes[i]];
    return Number.isFinite(this.numbers[i]) ? String(this.numbers[i]) : "";
  }
}
const columns = points.columns.map((column) => new Column(column));
const known = columns.slice(0, -1); // the last tells nothing but the groups apart

const short = (value, digits = 4) => Number(value.toPrecision(digits)).toString();
const percent = (share) => (share > 0 && share < 0.0005 ? "<0.1%" : `${(100 * share).toFixed(1)}%`);
const gammaText = (g) => `gamma = ${short(path.gammas[g])}`;
const componentName = (axis) => `component ${axis + 1}`;

const notFoundAgain = (axis) => (summary.components[axis].found_again === false ? " (not found again)" : "");

// With the share of each group's variance along the axis, where it is known.
function axisTitle(g, axis) {
  const cases = path.axis_shares.foreground[g],
    controls = path.axis_shares.background[g];
  const name = `${componentName(axis)}${notFoundAgain(axis)}`;
  if (!cases) return name;
  return `${name} (${words.cases} ${percent(cases[axis])}, ${words.controls} ${percent(controls[axis])})`;
}

const isControl = (i) => i < points.n_background;
const groupName = (i) => words[isControl(i) ? "control" : "case"];

function nameOf(i) {
  const control = isControl(i),
    names = points.names[control ? "background" : "foreground"];
  const own = names && names[control ? i : i - points.n_background];
  return own ?? `${groupName(i)}, row ${rowNumbers[i] + 1}`;
}

// What everything on the page shows. `shades`: a byte for each point, 255 if it has no value; null without a scale.
const state = {
  column: columns[0], // whose groups are in the legend
  hidden: new Set(), // groups
  selected: new Uint8Array(N),
  scale: null, // { name, shades, low, high }
  arrows: false,
  mode: null, // what dragging does: "zoom", "move" or "select"
};
const isShown = (i) => !state.hidden.has(state.column.groupOf[i]);

// Change a text only if it differs: a new one, even if it is the same, makes the browser lay out the page again.
function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
