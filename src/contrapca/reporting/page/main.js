// The page: axes and toolbar.

// No window but this one.
Object.defineProperty(window, "open", { value: () => null, writable: false, configurable: false });

const pictures = [new Picture(element("scatter"), path.start), new Picture(element("scatter-b"), 0)];
const inUse = () => pictures.filter(({ root }) => !root.closest("[hidden]"));
// After anything but a step: sizes or colours may have changed.
const redraw = () =>
  inUse().forEach((picture) => {
    picture.measure();
    picture.draw();
  });
const folded = element("cautions"); // null if there are none
let wasOpen = false; // before printing
const LONG_NAME = 20; // characters of a feature, which take more of the width than its bar
const PAUSE = 150; // milliseconds after the last step until the table of features follows
let tableTimer = null;

// The first picture at a gamma, with all that follows it.
function show(g) {
  pictures[0].show(g);
  showLoadings();
  clearTimeout(tableTimer);
  tableTimer = setTimeout(showTable, PAUSE);
  if (state.selected.includes(1)) showSelection();
  followGamma();
}

function setMode(mode) {
  state.mode = state.mode === mode ? null : mode;
  document
    .querySelectorAll("button[data-mode]")
    .forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.mode === state.mode)));
  document.documentElement.dataset.mode = state.mode ?? "none";
}

for (const [picture, ending] of [
  [pictures[0], ""],
  [pictures[1], "-b"],
]) {
  ["horizontal", "vertical"].forEach((name, j) =>
    element(name + ending)?.addEventListener("change", (event) => {
      picture.axes[j] = Number(event.target.value);
      picture.view = null;
      picture.show(picture.step);
      if (picture !== pictures[0]) return;
      showLoadings();
      showTable();
      showColourChoice();
    }),
  );
}
onClick("zoom-in", () => inUse().forEach((picture) => picture.zoom(1 / 1.5)));
onClick("zoom-out", () => inUse().forEach((picture) => picture.zoom(1.5)));
onClick("zoom-off", () => inUse().forEach((picture) => picture.unzoom()));
onClick("clear", () => chooseWhere(() => false, false));
onClick("scale-off", () => colourBy(null));
element("arrows")?.addEventListener("click", () => {
  state.arrows = !state.arrows;
  element("arrows").setAttribute("aria-pressed", String(state.arrows));
  redraw();
});
document
  .querySelectorAll("button[data-mode]")
  .forEach((button) => button.addEventListener("click", () => setMode(button.dataset.mode)));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
for (const [event, paper] of [
  ["beforeprint", true],
  ["afterprint", false],
]) {
  addEventListener(event, () => {
    document.documentElement.toggleAttribute("data-paper", paper); // ink on white, also in dark mode
    if (folded && paper) wasOpen = folded.open;
    if (folded) folded.open = paper || wasOpen; // all of them are printed
    redraw();
  });
}
const resized = new ResizeObserver(() => {
  redraw();
  drawCurves();
});
document.querySelectorAll(".picture, .plot").forEach((root) => resized.observe(root));

const hasLongNames = featureNames.some((name) => name.length > LONG_NAME);
document.body.classList.toggle("long-names", hasLongNames);
pictures.forEach(attachPointer);
if (element("strength")) attachStrength();
makeLegend();
makeTakeaway();
if (!matchMedia("(pointer: coarse)").matches) setMode("zoom"); // fingers scroll the page; the buttons change that
setScale(scaleOf(state.column));
show(path.start);
showTable();
drawCurves();
// Cautions are unfolded where the answers still fit on the first screen.
if (folded) {
  folded.open = true;
  if (element("answers").getBoundingClientRect().bottom > innerHeight) folded.open = false;
}
// For tests and for readers who write scripts: the pictures, and what they show.
window.contrapcaReport = { pictures, state, positions, show };
document.documentElement.dataset.ready = "true";
