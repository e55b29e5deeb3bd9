// The legend, whose buttons show and hide groups; what colours the points; and the histogram of a feature.

const BINS = 24;

// Groups whose points are coloured by a scale have no colour of their own.
const colourOfSymbol = (group) => {
  const { scale, column } = state,
    shaded = scale && (scale.feature !== undefined || (column.numbers && group.name === words.cases));
  return shaded ? "#6b7680" : group.colour;
};

function symbolOf(group) {
  const drawing = svgElement("svg", { viewBox: "-1.4 -1.4 2.8 2.8", class: "symbol", "aria-hidden": "true" });
  drawing.append(svgElement("path", { d: OUTLINES[group.symbol], fill: colourOfSymbol(group) }));
  return drawing;
}

function makeLegend() {
  const legend = element("legend");
  let before = state.hidden; // as it was when a double click began
  legend.replaceChildren(
    ...state.column.groups.map((group, code) => {
      const button = document.createElement("button"),
        { length } = group.members,
        of = length < group.rows ? ` of ${group.rows.toLocaleString("en")}` : "";
      button.type = "button";
      button.className = "group";
      button.title = "Click to hide or show; double-click, or press Shift+Enter, to show only this one";
      button.append(symbolOf(group), `${group.name} (${length.toLocaleString("en")}${of})`);
      button.addEventListener("click", ({ detail, shiftKey }) => {
        if (shiftKey) isolateGroup(code);
        else if (detail < 2) {
          before = new Set(state.hidden);
          toggleGroup(code);
        }
      });
      button.addEventListener("dblclick", () => {
        state.hidden = before;
        isolateGroup(code);
      });
      button.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" || !event.shiftKey) return;
        event.preventDefault();
        isolateGroup(code);
      });
      return button;
    }),
  );
  showLegend();
}

function showLegend() {
  element("legend")
    .querySelectorAll("button")
    .forEach((button, code) => {
      button.setAttribute("aria-pressed", String(!state.hidden.has(code)));
      button.querySelector("path").setAttribute("fill", colourOfSymbol(state.column.groups[code]));
    });
}

function toggleGroup(code) {
  state.hidden.has(code) ? state.hidden.delete(code) : state.hidden.add(code);
  showLegend();
  redraw();
}

// Only one group, or all of them again if it is alone already.
function isolateGroup(code) {
  const { groups } = state.column,
    alone = !state.hidden.has(code) && state.hidden.size === groups.length - 1;
  state.hidden = new Set(alone ? [] : [...groups.keys()].filter((other) => other !== code));
  showLegend();
  redraw();
}

// The numbers of a column as a scale; null for classes. Doses have shades by their order, as they count by their ranks.
function scaleOf({ numbers, name, isDose }) {
  const present = numbers?.filter(Number.isFinite);
  if (!present?.length) return null;
  const low = present.reduce((a, b) => Math.min(a, b)),
    high = present.reduce((a, b) => Math.max(a, b));
  const values = isDose ? Float64Array.from(new Set(present)).sort() : null,
    order = new Map(values && Array.from(values, (value, k) => [value, k / Math.max(1, values.length - 1)]));
  const shades = Uint8Array.from(numbers, (value) => {
    if (!Number.isFinite(value)) return 255;
    return high > low ? Math.round(254 * (values ? order.get(value) : (value - low) / (high - low))) : 127;
  });
  const middle = values ? (values.length % 2 ? values[values.length >> 1] : null) : (low + high) / 2;
  return { name, shades, low, middle, high };
}

// Both ends in words; a feature's values may lie beyond them.
function endsOf({ feature, low, high }) {
  const own = feature !== undefined;
  return [`${own ? "≤ " : ""}${short(low)}`, `${own ? "≥ " : ""}${short(high)}`];
}

function setScale(scale) {
  state.scale = scale;
  const bar = element("scale"),
    own = scale?.feature !== undefined;
  bar.hidden = scale === null;
  if (scale) {
    const [low, high] = endsOf(scale);
    element("scale-name").textContent = scale.name;
    element("scale-low").textContent = low;
    element("scale-middle").textContent = scale.middle === null ? "" : short(scale.middle);
    element("scale-high").textContent = high;
    element("scale-bar").style.background = `linear-gradient(90deg,${SCALE.map(css).join(",")})`;
    element("scale-off").textContent = `Back to ${cut(state.column.name, STRIP)}`;
    element("scale-off").hidden = element("scale-note").hidden = !own;
    element("histogram").toggleAttribute("hidden", !own);
    if (own) drawHistogram(scale);
  }
  showLegend();
  showColourChoice();
  redraw();
}

// How the values of a feature are spread: cases as bars, controls as a line, each as a share of its group.
function drawHistogram({ name, shades, low, high }) {
  const from = points.n_background,
    value = (shade) => short(low + (shade / 254) * (high - low), 3),
    parts = [];
  const [cases, controls] = [shades.subarray(from), shades.subarray(0, from)].map((every) => {
    const known = every.filter((shade) => shade < 255).sort(),
      bars = new Float64Array(BINS);
    for (const shade of known) bars[Math.floor((shade * BINS) / 255)] += 1 / known.length;
    const middle = known.length ? value(known[known.length >> 1]) : "none";
    return { bars, middle, missing: every.length - known.length };
  });
  const top = Math.max(...cases.bars, ...controls.bars, 1e-9);
  cases.bars.forEach((share, k) =>
    parts.push(svgElement("rect", { class: "cases", x: k, width: 1, y: 1 - share / top, height: share / top })),
  );
  const steps = Array.from(controls.bars, (share, k) => `L${k} ${1 - share / top}H${k + 1}`).join("");
  parts.push(svgElement("path", { class: "controls", d: `M0 1${steps}V1` }));
  const svg = element("histogram"),
    missing = cases.missing + controls.missing;
  svg.setAttribute("viewBox", `0 0 ${BINS} 1`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-label", `Histogram of ${name}: ${words.cases} and ${words.controls}`);
  svg.replaceChildren(...parts);
  const gaps = missing ? ` Missing: ${cases.missing} and ${controls.missing}.` : "";
  const medians = `Bars: ${words.cases}, median ${cases.middle}. Line: ${words.controls}, median ${controls.middle}.`;
  element("scale-note").textContent = medians + gaps;
}

// Colour by a column: its classes become the legend, its numbers a scale.
function setColumn(column) {
  Object.assign(state, { column, hidden: new Set() });
  pictures.forEach((picture) => picture.place());
  makeLegend();
  setScale(scaleOf(column));
}

// Choices of colour: what is known of the samples, and the strongest features of the axes.
function showColourChoice() {
  const select = element("colour"),
    { scale, column } = state,
    feature = scale?.feature;
  const strongest = pictures[0].axes.flatMap((axis) => largest(loadings.column(pictures[0].step, axis), BARS / 2));
  const offered = new Set(feature === undefined ? strongest : [feature, ...strongest]);
  const option = (value, text) =>
    Object.assign(document.createElement("option"), { value, textContent: cut(text, 30) });
  const group = (label, options) => {
    const made = Object.assign(document.createElement("optgroup"), { label });
    made.append(...options);
    return made;
  };
  select.replaceChildren(
    group(
      "Samples",
      columns.map(({ name }, k) => option(`column ${k}`, name)),
    ),
    group(
      "Features",
      [...offered].filter((j) => stored.has(j)).map((j) => option(`feature ${j}`, featureNames[j])),
    ),
  );
  select.value = feature === undefined ? `column ${columns.indexOf(column)}` : `feature ${feature}`;
}

element("colour").addEventListener("change", ({ target }) => {
  const [kind, number] = target.value.split(" ");
  if (kind === "feature") colourBy(Number(number));
  else setColumn(columns[number]);
});
