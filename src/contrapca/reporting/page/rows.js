// The samples that the reader has selected: who they are, and which features set them apart.

const TABLE_ROWS = 50;
const DIFFERENCES = 10; // features that set a selection apart

// Select a point, or unselect it; `add` keeps the others.
function choosePoint(i, add) {
  const chosen = !state.selected[i];
  if (!add) state.selected.fill(0);
  state.selected[i] = Number(chosen);
  changeSelection();
}

function chooseWhere(inside, add) {
  for (let i = 0; i < N; i++) state.selected[i] = Number((add && state.selected[i]) || inside(i));
  changeSelection();
}

function changeSelection() {
  showSelection();
  if (state.selected.includes(1)) announce(element("selection-count").textContent);
  redraw();
}

const selectedRows = () => Array.from(state.selected.keys()).filter((i) => state.selected[i]);

function cell(kind, text) {
  const made = document.createElement(kind);
  made.textContent = text;
  return made;
}

function showSelection() {
  const chosen = selectedRows(),
    section = element("selection"),
    { step } = pictures[0];
  section.hidden = chosen.length === 0;
  if (section.hidden) return;
  const shown = Array.from({ length: d }, (_, axis) => positions.column(step, axis));
  const head = element("selection-table").tHead.rows[0],
    body = element("selection-table").tBodies[0];
  const names = ["sample", "group", ...known.map(({ name }) => name), ...shown.map((_, axis) => componentName(axis))];
  head.replaceChildren(...names.map((name) => Object.assign(cell("th", name), { scope: "col" })));
  body.replaceChildren(
    ...chosen.slice(0, TABLE_ROWS).map((i) => {
      const row = document.createElement("tr");
      row.append(
        Object.assign(cell("th", nameOf(i)), { scope: "row" }),
        cell("td", groupName(i)),
        ...known.map((column) => cell("td", column.textOf(i))),
        ...shown.map((column) => cell("td", short(column[i], 4))),
      );
      return row;
    }),
  );
  const rest = chosen.length > TABLE_ROWS ? `; the first ${TABLE_ROWS} are listed` : "",
    at = step === path.start ? "" : ` at ${gammaText(step)}`;
  element("selection-count").textContent =
    `${chosen.length.toLocaleString("en")} sample${chosen.length === 1 ? "" : "s"} selected${at}${rest}`;
  element("selection-groups").textContent = `Among them ${composition(chosen)}.`;
  showDifferences();
}

// How many of each group of the legend are selected: 12 of 135 controls, and so on.
function composition(chosen) {
  const counts = new Map();
  const { groups, groupOf } = state.column;
  for (const i of chosen) counts.set(groupOf[i], (counts.get(groupOf[i]) ?? 0) + 1);
  const written = (count) => count.toLocaleString("en"),
    parts = [...counts]
      .sort((a, b) => b[1] - a[1])
      .map(([code, count]) => `${written(count)} of ${written(groups[code].members.length)} ${groups[code].name}`);
  return parts.slice(0, 5).join(", ") + (parts.length > 5 ? ` and ${parts.length - 5} more groups` : "");
}

// The features whose means differ most between the selected cases and the others, in standard deviations within both.
function differences() {
  const from = points.n_background,
    found = [];
  for (const [feature] of stored) {
    const shades = shadesOf(feature),
      sums = [new Float64Array(3), new Float64Array(3)];
    for (let i = from; i < N; i++) {
      if (shades[i] === 255) continue;
      const own = sums[state.selected[i]];
      own[0] += 1;
      own[1] += shades[i];
      own[2] += shades[i] ** 2;
    }
    const [others, chosen] = sums,
      n = others[0] + chosen[0];
    if (!others[0] || !chosen[0] || n < 4) continue;
    const squares = others[2] + chosen[2] - others[1] ** 2 / others[0] - chosen[1] ** 2 / chosen[0],
      within = Math.sqrt(Math.max(squares, 0.1) / (n - 2));
    found.push({ feature, difference: (chosen[1] / chosen[0] - others[1] / others[0]) / within });
  }
  return found.sort((a, b) => Math.abs(b.difference) - Math.abs(a.difference)).slice(0, DIFFERENCES);
}

function showDifferences() {
  const found = differences(),
    section = element("selection-features"),
    body = section.querySelector("tbody");
  section.hidden = found.length === 0;
  if (!found.length) return;
  while (body.rows.length > found.length) body.deleteRow(-1);
  found.forEach(({ feature, difference }, i) => {
    if (!body.rows[i]) body.append(element("loadings").querySelector("tbody tr").cloneNode(true));
    const row = body.rows[i],
      button = row.querySelector("button");
    if (button && button.feature === undefined) button.remove(); // a copy, which hears no click
    showBar(row, feature, difference, Math.abs(found[0].difference));
  });
}
