// What readers take away: pictures with title and legend, tables, texts.

function download(name, content, type) {
  const link = document.createElement("a"),
    url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  Object.assign(link, { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

const fileName = (what, ending) => `${what}_gamma_${short(path.gammas[pictures[0].step])}.${ending}`;
const csvCell = (value) =>
  typeof value === "number" ? String(value) : /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
const csv = (rows) => rows.map((row) => `${row.map(csvCell).join(",")}\n`).join("");

// Name, group, label and all coordinates of rows, at the gamma of the first picture; cases first, as in the tables.
function coordinateTable(chosen) {
  const columns = Array.from({ length: d }, (_, axis) => positions.column(pictures[0].step, axis));
  const taken = known.filter(({ heading }) => heading),
    titles = taken.map(({ heading }) => heading),
    head = ["row", "group", ...titles, ...columns.map((_, axis) => `component_${axis + 1}`)];
  const rows = [...chosen].sort((i, j) => isControl(i) - isControl(j) || rowNumbers[i] - rowNumbers[j]);
  return csv([
    head,
    ...rows.map((i) => {
      const named = points.names[isControl(i) ? "background" : "foreground"],
        name = named ? nameOf(i) : String(rowNumbers[i] + 1);
      return [name, groupName(i), ...taken.map((own) => own.textOf(i)), ...columns.map((column) => column[i])];
    }),
  ]);
}

function loadingTable() {
  const columns = Array.from({ length: d }, (_, axis) => loadings.column(pictures[0].step, axis));
  return csv([
    ["feature", ...columns.map((_, axis) => `component_${axis + 1}`)],
    ...featureNames.map((name, j) => [name, ...columns.map((column) => column[j])]),
  ]);
}

const escaped = (text) =>
  text
    .replace(/[<>&"]/g, (character) => `&#${character.charCodeAt(0)};`)
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, " ");
const WIDTH = 960,
  HEIGHT = 640;
const PRINTED = [
  ".tick, .frame { stroke: #888888; }",
  ".arrow { fill: none; stroke: #222222; stroke-width: 1.5; }",
  "text { fill: #111111; font: 12px system-ui, sans-serif; }",
  ".arrow-name { paint-order: stroke; stroke: #ffffff; stroke-width: 3px; }",
  ".title { font-size: 13px; }",
  ".heading { font-size: 18px; font-weight: 600; }",
].join("\n");

// The first picture as it is on the page (zoom, colours, hidden groups), drawn for paper, the legend beside it.
function svgText(picture) {
  const top = 64,
    left = leftMargin(),
    shown = state.column.groups.filter((_, code) => !state.hidden.has(code)),
    words = [...shown.map(({ name }) => cut(name, 34)), ...(state.scale ? [cut(state.scale.name, 36)] : [])],
    legend = Math.max(state.scale ? 200 : 0, ...words.map((text) => 24 + textWidth(text))) + 24;
  const frame = new Frame(
    { left, top, width: WIDTH - legend - left - 10, height: HEIGHT - top - 54 },
    picture.frame.x,
    picture.frame.y,
  );
  const drawing = { frame, axes: picture.axes, step: picture.step };
  const [xTitle, yTitle] = picture.titles(),
    radius = pointRadius(),
    markup = (parts) =>
      parts.map((part) => new XMLSerializer().serializeToString(part).replace(` xmlns="${SVG}"`, "")).join("");
  const shapes = shown.map((group) => pointShapes(picture, frame, group, radius));
  const arrows = state.arrows ? markup(arrowParts(drawing)) : "";
  const about = `${model.estimator}, ${gammaText(picture.step)}; contrapca, ${summary.date}`;
  return [
    `<svg xmlns="${SVG}" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}">`,
    `<style>${PRINTED}</style><rect width="100%" height="100%" fill="#ffffff"/>`,
    `<text class="heading" x="20" y="28">${escaped(cut(summary.title, 90))}</text>`,
    `<text x="20" y="48">${escaped(about)}</text>`,
    `<svg x="${frame.left}" y="${frame.top}" width="${frame.width}" height="${frame.height}">`,
    ...shapes,
    arrows,
    "</svg>",
    markup(axisParts(frame, xTitle, yTitle, { yTicks: stripNames(frame) })),
    ...legendParts(shown, WIDTH - legend + 10, top),
    "</svg>",
  ].join("\n");
}

function pointShapes(picture, frame, { symbol, members }, radius) {
  const found = [];
  for (const i of members) {
    if (!picture.inView(i)) continue;
    const x = frame.across(picture.x[i]).toFixed(1),
      y = frame.down(picture.y[i]).toFixed(1),
      fill = css(colourOf(i));
    found.push(
      symbol === "circle"
        ? `<circle cx="${x}" cy="${y}" r="${radius}" fill="${fill}"/>`
        : `<path d="${OUTLINES[symbol]}" transform="translate(${x} ${y}) scale(${radius})" fill="${fill}"/>`,
    );
  }
  return `<g fill-opacity="0.8" fill-rule="evenodd">${found.join("")}</g>`;
}

function legendParts(shown, x, y) {
  const parts = [];
  shown.forEach((group, k) => {
    const place = `translate(${x + 6} ${y + 8 + 20 * k}) scale(5)`,
      fill = colourOfSymbol(group);
    parts.push(`<path d="${OUTLINES[group.symbol]}" fill-rule="evenodd" transform="${place}" fill="${fill}"/>`);
    parts.push(`<text x="${x + 20}" y="${y + 12 + 20 * k}">${escaped(cut(group.name, 34))}</text>`);
  });
  const { scale } = state,
    below = y + 20 * shown.length + 24;
  if (scale) {
    const stops = SCALE.map((colour, k) => `<stop offset="${k / 2}" stop-color="${css(colour)}"/>`).join("");
    parts.push(`<defs><linearGradient id="scale">${stops}</linearGradient></defs>`);
    parts.push(`<text x="${x}" y="${below}">${escaped(cut(scale.name, 36))}</text>`);
    parts.push(`<rect x="${x}" y="${below + 8}" width="200" height="12" fill="url(#scale)"/>`);
    const [low, high] = endsOf(scale);
    parts.push(`<text x="${x}" y="${below + 36}">${low}</text>`);
    parts.push(`<text x="${x + 200}" y="${below + 36}" text-anchor="end">${high}</text>`);
  }
  return parts;
}

// The same picture in pixels, twice as many as its size.
function pngOf(text) {
  return new Promise((resolve, reject) => {
    const image = new Image(),
      url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    image.onerror = reject;
    image.onload = () => {
      const canvas = document.createElement("canvas");
      Object.assign(canvas, { width: 2 * WIDTH, height: 2 * HEIGHT });
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      URL.revokeObjectURL(url);
      canvas.toBlob(resolve, "image/png");
    };
    image.src = url;
  });
}

async function copyText(button) {
  const source = element(button.dataset.copies),
    selection = getSelection();
  try {
    await navigator.clipboard.writeText(source.textContent);
  } catch {
    // pages from a file may not be allowed to
    selection.selectAllChildren(source);
    document.execCommand("copy");
  }
  button.textContent = "Copied";
  setTimeout(() => {
    button.textContent = "Copy";
  }, 2000);
}

function makeTakeaway() {
  const all = () => Array.from({ length: N }, (_, i) => i);
  const actions = {
    "save-png": async () => download(fileName("picture", "png"), await pngOf(svgText(pictures[0]))),
    "save-svg": () => download(fileName("picture", "svg"), svgText(pictures[0]), "image/svg+xml"),
    "save-coordinates": () => download(fileName("coordinates", "csv"), coordinateTable(all()), "text/csv"),
    "save-loadings": () => download(fileName("loadings", "csv"), loadingTable(), "text/csv"),
    "save-selection": () => download(fileName("selection", "csv"), coordinateTable(selectedRows()), "text/csv"),
  };
  for (const [id, action] of Object.entries(actions)) element(id).addEventListener("click", action);
  document
    .querySelectorAll("button[data-copies]")
    .forEach((button) => button.addEventListener("click", () => copyText(button)));
}
