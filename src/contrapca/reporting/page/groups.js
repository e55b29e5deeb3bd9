// The legend, whose buttons show and hide groups, and the bar that explains a scale of colours.

// Groups whose points are coloured by a scale have no colour of their own.
const colourOfSymbol = (group) =>
  state.scale && (group.on_scale || state.scale.feature !== undefined) ? "#6b7680" : group.colour;

function symbolOf(group) {
  const drawing = svgElement("svg", { viewBox: "-1.4 -1.4 2.8 2.8", class: "symbol", "aria-hidden": "true" });
  drawing.append(svgElement("path", { d: OUTLINES[group.symbol], fill: colourOfSymbol(group) }));
  return drawing;
}

function makeLegend() {
  const legend = element("legend");
  let before = state.hidden; // as it was when a double click began
  groups.forEach((group, code) => {
    const button = document.createElement("button"),
      count = group.count.toLocaleString("en");
    button.type = "button";
    button.className = "group";
    button.title = "Click to hide or show; double-click, or press Shift+Enter, to show only this one";
    const of = group.count < group.rows ? ` of ${group.rows.toLocaleString("en")}` : "";
    button.append(symbolOf(group), `${group.name} (${count}${of})`);
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
    legend.append(button);
  });
  showLegend();
}

function showLegend() {
  element("legend")
    .querySelectorAll("button")
    .forEach((button, code) => {
      button.setAttribute("aria-pressed", String(!state.hidden.has(code)));
      button.querySelector("path").setAttribute("fill", colourOfSymbol(groups[code]));
    });
}

function toggleGroup(code) {
  state.hidden.has(code) ? state.hidden.delete(code) : state.hidden.add(code);
  showLegend();
  redraw();
}

// Only one group, or all of them again if it is alone already.
function isolateGroup(code) {
  const alone = !state.hidden.has(code) && state.hidden.size === groups.length - 1;
  state.hidden = new Set(alone ? [] : [...groups.keys()].filter((other) => other !== code));
  showLegend();
  redraw();
}

// Numeric labels as a scale; null for classes.
function labelScale() {
  const present = labelValues?.filter(Number.isFinite);
  if (!present?.length) return null;
  const low = present.reduce((a, b) => Math.min(a, b)),
    high = present.reduce((a, b) => Math.max(a, b));
  const shades = new Uint8Array(N).fill(255);
  labelValues.forEach((value, i) => {
    if (Number.isFinite(value))
      shades[points.n_background + i] = high > low ? Math.round((254 * (value - low)) / (high - low)) : 127;
  });
  return { name: summary.data.label_name, shades, low, high };
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
    element("scale-middle").textContent = short((scale.low + scale.high) / 2);
    element("scale-high").textContent = high;
    element("scale-bar").style.background = `linear-gradient(90deg,${SCALE.map(css).join(",")})`;
    element("scale-off").hidden = !own;
  }
  showLegend();
  redraw();
}
