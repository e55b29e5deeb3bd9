// The features behind the axes: bars of the largest loadings, a table of all, and points coloured by a feature.

const BARS = 12;
const ROWS_AT_ONCE = 100; // of the table; more on request
const stored = new Map(points.features.index.map((feature, place) => [feature, place])); // whose values are in the page
const storedShades = bytes(points.features.shades);
const shadesOf = (feature) => storedShades.subarray(stored.get(feature) * N, (stored.get(feature) + 1) * N);
const shift = new Float32Array(bytes(points.about.shift).buffer);
const table = { by: null, falling: true, rows: ROWS_AT_ONCE }; // the column that sorts, its direction, rows shown

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

// The features named by the answers, which are those of the report's own gamma.
function showNamed() {
  document.querySelectorAll(".card").forEach((card) => {
    const column = loadings.column(path.start, Number(card.dataset.component)),
      top = largest(column, 4);
    for (const [kind, sign] of [
      ["more", 1],
      ["less", -1],
    ]) {
      const named = top.filter((j) => sign * column[j] > 0);
      card.querySelectorAll(`.${kind} .feature`).forEach((cell, i) => {
        if (named[i] !== undefined) showButton(cell, named[i]);
      });
    }
  });
}

// Bars of both axes of the first picture.
function showLoadings() {
  const { step, axes } = pictures[0],
    shown = axes.map((axis) => loadings.column(step, axis));
  const tops = shown.map((column) => largest(column, BARS));
  const most = Math.max(...tops.map((top, k) => Math.abs(shown[k][top[0]])), 1e-300);
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
        .forEach((row, i) => showBar(row, tops[place][i], shown[place][tops[place][i]], most));
    });
  showNamed();
}

// A row with the name of a feature, a bar from the middle to one side, and the number.
function showBar(row, feature, number, most) {
  const [head, bar, value] = row.children,
    fill = bar.querySelector(".fill"),
    width = (50 * Math.abs(number)) / most;
  showButton(head, feature);
  write(value, short(number, 3));
  fill.style.width = `${width}%`;
  fill.style.left = `${number < 0 ? 50 - width : 50}%`;
  fill.className = `fill ${number < 0 ? "negative" : "positive"}`;
}

// Columns of the table: a name, the numbers, and how one is written. Loadings are those of the first picture.
function tableColumns() {
  const found = Array.from({ length: d }, (_, axis) => ({
      name: componentName(axis),
      numbers: loadings.column(pictures[0].step, axis),
      text: (value) => short(value, 3),
    })),
    { missing } = points.about;
  found.push({ name: "shift", numbers: shift, text: (value) => (value > 0 ? "+" : "") + value.toFixed(2) });
  for (const kind of missing ? ["cases", "controls"] : [])
    found.push({ name: `missing, ${kind}`, numbers: missing[kind], text: (value) => value.toLocaleString("en") });
  return found;
}

// All features whose name contains the text of the search, sorted.
function showTable() {
  const wanted = element("search").value.trim().toLowerCase(),
    every = tableColumns(),
    by = table.by === "feature" ? null : (every.find(({ name }) => name === table.by) ?? every[pictures[0].axes[0]]);
  const found = [...featureNames.keys()].filter((j) => featureNames[j].toLowerCase().includes(wanted));
  const way = table.falling ? 1 : -1;
  if (by) found.sort((a, b) => way * (Math.abs(by.numbers[b]) - Math.abs(by.numbers[a])) || a - b);
  else found.sort((a, b) => way * featureNames[a].localeCompare(featureNames[b], "en", { numeric: true }));
  showHead(every, by?.name ?? "feature");
  const body = element("feature-table").tBodies[0],
    shown = found.slice(0, table.rows);
  while (body.rows.length > shown.length) body.deleteRow(-1);
  shown.forEach((feature, i) => {
    const row = body.rows[i] ?? body.insertRow();
    if (row.cells.length !== every.length + 1) {
      row.replaceChildren(Object.assign(cell("th", ""), { scope: "row" }), ...every.map(() => cell("td", "")));
    }
    showButton(row.cells[0], feature);
    every.forEach(({ numbers, text }, k) => write(row.cells[k + 1], text(numbers[feature])));
  });
  const count = `${found.length.toLocaleString("en")} feature${found.length === 1 ? "" : "s"}`;
  write(element("matched"), wanted ? count : "");
  element("more").hidden = found.length <= table.rows;
}

function showHead(every, by) {
  const head = element("feature-table").tHead.rows[0];
  if (!head.cells.length)
    for (const name of ["feature", ...every.map((column) => column.name)]) {
      const about = { type: "button", className: "sort", textContent: name },
        button = Object.assign(document.createElement("button"), about),
        made = Object.assign(document.createElement("th"), { scope: "col" });
      button.addEventListener("click", () => {
        table.falling = made.getAttribute("aria-sort") !== "descending";
        table.by = name;
        showTable();
      });
      made.append(button);
      head.append(made);
    }
  for (const made of head.cells) {
    const own = made.textContent === by;
    made.setAttribute("aria-sort", own ? (table.falling ? "descending" : "ascending") : "none");
  }
}

// Colour the points by a feature, or by their column again (null).
function colourBy(feature) {
  const place = stored.get(feature);
  if (feature !== null && place === undefined) {
    const held = `it holds those of the ${stored.size.toLocaleString("en")} features with the largest loadings.`;
    element("feature-note").textContent = `The page has no room for the values of ${featureNames[feature]}: ${held}`;
    return;
  }
  element("feature-note").textContent = "";
  const { low, high } = points.features,
    ends = { low: low[place], middle: (low[place] + high[place]) / 2, high: high[place] },
    own = { feature, name: featureNames[feature], ...ends };
  setScale(feature === null ? scaleOf(state.column) : { ...own, shades: shadesOf(feature) });
  showLoadings();
  showTable();
  if (!element("selection").hidden) showDifferences();
}

element("search").addEventListener("input", () => {
  table.rows = ROWS_AT_ONCE;
  showTable();
});
element("more").addEventListener("click", () => {
  table.rows += 5 * ROWS_AT_ONCE;
  showTable();
});
