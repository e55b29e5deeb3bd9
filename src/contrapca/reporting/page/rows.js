// The rows that the reader has selected, as a table.

const TABLE_ROWS = 50;

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
  const columns = Array.from({ length: d }, (_, axis) => positions.column(step, axis));
  const head = element("selection-table").querySelector("thead tr"),
    body = element("selection-table").querySelector("tbody");
  head.replaceChildren(
    ...["row", "group", ...columns.map((_, axis) => componentName(axis))].map((name) => {
      const made = cell("th", name);
      made.scope = "col";
      return made;
    }),
  );
  body.replaceChildren(
    ...chosen.slice(0, TABLE_ROWS).map((i) => {
      const row = document.createElement("tr"),
        name = cell("th", nameOf(i));
      name.scope = "row";
      row.append(name, cell("td", labelOf(i)), ...columns.map((column) => cell("td", short(column[i], 4))));
      return row;
    }),
  );
  const rest = chosen.length > TABLE_ROWS ? `; the first ${TABLE_ROWS} are shown` : "";
  element("selection-count").textContent =
    `${chosen.length.toLocaleString("en")} row${chosen.length === 1 ? "" : "s"} selected at ${gammaText(step)}${rest}`;
}
