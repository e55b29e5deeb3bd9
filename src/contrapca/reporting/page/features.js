// The features behind the axes: bars of the largest loadings, a search, and points coloured by a feature.

const BARS = 12;
const MATCHES = 12;
const stored = new Map(points.features.index.map((feature, place) => [feature, place])); // whose values are in the page
const storedShades = bytes(points.features.shades);

function largest(column, count) {
  const size = Float64Array.from(column, Math.abs),
    least = Float64Array.from(size).sort()[Math.max(0, size.length - count)];
  const found = [];
  for (let j = 0; j < size.length; j++) if (size[j] >= least) found.push(j);
  return found.sort((a, b) => size[b] - size[a] || a - b).slice(0, count);
}

// The button of a feature in a cell. It stays the same element, so that the keyboard's focus is not lost.
function showButton(cell, feature) {
  let button = cell.querySelector("button");
  if (!button) {
    button = document.createElement("button");
    button.type = "button";
    button.className = "name";
    button.addEventListener("click", () => colourBy(state.scale?.feature === button.feature ? null : button.feature));
    cell.replaceChildren(button);
  }
  if (button.feature !== feature) {
    button.feature = feature;
    button.textContent = button.title = featureNames[feature];
  }
  const pressed = String(state.scale?.feature === feature);
  if (button.getAttribute("aria-pressed") !== pressed) button.setAttribute("aria-pressed", pressed);
}

// Bars of both axes of the first picture.
function showLoadings() {
  const { step, axes } = pictures[0],
    columns = axes.map((axis) => loadings.column(step, axis));
  const tops = columns.map((column) => largest(column, BARS));
  const most = Math.max(...tops.map((top, k) => Math.abs(columns[k][top[0]])), 1e-300);
  element("loadings")
    .querySelectorAll(".panel")
    .forEach((panel, place) => {
      panel.hidden = place >= axes.length;
      if (panel.hidden) return;
      write(panel.querySelector("h3"), componentName(axes[place]));
      panel.querySelector("caption").textContent =
        `Largest loadings on ${componentName(axes[place])} at ${gammaText(step)}`;
      panel
        .querySelectorAll("tbody tr")
        .forEach((row, i) => showBar(row, tops[place][i], columns[place][tops[place][i]], most));
    });
  showMatches();
}

function showBar(row, feature, loading, most) {
  const [head, bar, value] = row.children,
    fill = bar.querySelector(".fill"),
    width = (50 * Math.abs(loading)) / most;
  showButton(head, feature);
  write(value, short(loading, 3));
  fill.style.width = `${width}%`;
  fill.style.left = `${loading < 0 ? 50 - width : 50}%`;
  fill.className = `fill ${loading < 0 ? "negative" : "positive"}`;
}

function showMatches() {
  const wanted = element("search").value.trim().toLowerCase(),
    list = element("matches"),
    { step, axes } = pictures[0];
  if (!wanted && !element("matched").textContent) return;
  const found = [];
  for (let j = 0; wanted && j < featureNames.length; j++)
    if (featureNames[j].toLowerCase().includes(wanted)) found.push(j);
  const columns = found.length ? axes.map((axis) => loadings.column(step, axis)) : [];
  const size = (feature) => Math.max(...columns.map((column) => Math.abs(column[feature])));
  found.sort((a, b) => size(b) - size(a));
  const shown = found.slice(0, MATCHES);
  while (list.children.length > shown.length) list.lastElementChild.remove();
  shown.forEach((feature, i) => {
    const entry = list.children[i] ?? list.appendChild(document.createElement("li"));
    if (!entry.children.length) entry.append(document.createElement("span"), document.createElement("span"));
    const [name, numbers] = entry.children;
    showButton(name, feature);
    numbers.className = "value";
    numbers.textContent = columns.map((column) => short(column[feature], 3)).join(", ");
  });
  const count = found.length.toLocaleString("en"),
    more = found.length > MATCHES ? `; the ${MATCHES} with the largest loadings are shown` : "";
  element("matched").textContent = wanted ? `${count} feature${found.length === 1 ? "" : "s"}${more}` : "";
}

// Colour the points by a feature, or by their labels again (null).
function colourBy(feature) {
  const place = stored.get(feature);
  if (feature !== null && place === undefined) {
    const held = `it holds those of the ${stored.size.toLocaleString("en")} features with the largest loadings.`;
    announceVisibly(`The page has no room for the values of ${featureNames[feature]}: ${held}`);
    return;
  }
  announceVisibly("");
  const { low, high } = points.features;
  setScale(
    feature === null
      ? labelScale()
      : {
          feature,
          name: featureNames[feature],
          shades: storedShades.subarray(place * N, (place + 1) * N),
          low: low[place],
          high: high[place],
        },
  );
  showLoadings();
}

const announceVisibly = (text) => {
  element("feature-note").textContent = text;
};
