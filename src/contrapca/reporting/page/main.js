// The page: axes, toolbar, slider, two settings side by side.

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
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const folded = element("cautions"); // null if there are none
let wasOpen = false; // before printing
const LONG_NAME = 20; // characters of a feature, which take more of the width than its bar
const PAUSE = 150; // milliseconds after the last step until the table of features follows
let timer = null,
  tableTimer = null;

function showReadout(picture, readout, slider) {
  const { step } = picture;
  const [cases, controls] = [path.foreground_share[step], path.background_share[step]].map(percent);
  const hold = d > 1 ? "the components hold" : "the component holds";
  readout.textContent = `${gammaText(step)}: ${hold} ${cases} of the cases' variance and ${controls} of the controls'`;
  slider.value = step;
  slider.setAttribute("aria-valuetext", gammaText(step));
}

// The first picture at a gamma, with all that follows it.
function show(g) {
  pictures[0].show(g);
  showReadout(pictures[0], element("readout"), element("gamma"));
  showLoadings();
  clearTimeout(tableTimer);
  tableTimer = setTimeout(showTable, PAUSE);
  if (state.selected.includes(1)) showSelection();
  markCurves();
}

function showSecond(g) {
  pictures[1].show(g);
  showReadout(pictures[1], element("readout-b"), element("gamma-b"));
}

function stop() {
  clearTimeout(timer);
  timer = null;
  element("readout").setAttribute("aria-live", "polite");
  element("play").textContent = "▶ Play";
  element("play").setAttribute("aria-pressed", "false");
}

function play() {
  if (timer !== null) return stop();
  const last = path.gammas.length - 1;
  if (pictures[0].step === last) show(0);
  element("play").textContent = "⏸ Pause";
  element("play").setAttribute("aria-pressed", "true");
  element("readout").setAttribute("aria-live", "off"); // otherwise screen readers would read every step
  const next = () => {
    if (pictures[0].step >= last) return stop();
    show(pictures[0].step + 1);
    timer = setTimeout(next, calm.matches ? 1000 : 120);
  };
  timer = setTimeout(next, calm.matches ? 1000 : 120);
}

function setMode(mode) {
  state.mode = state.mode === mode ? null : mode;
  document
    .querySelectorAll("button[data-mode]")
    .forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.mode === state.mode)));
  document.documentElement.dataset.mode = state.mode ?? "none";
}

function compare() {
  const shown = element("second").hidden;
  element("second").hidden = element("second-slider").hidden = !shown;
  element("explorer").classList.toggle("two", shown);
  element("compare").setAttribute("aria-pressed", String(shown));
  redraw();
  if (shown) showSecond(pictures[1].step);
}

function onClick(id, action) {
  element(id).addEventListener("click", action);
}

element("gamma").addEventListener("input", (event) => {
  stop();
  show(Number(event.target.value));
});
element("gamma-b").addEventListener("input", (event) => showSecond(Number(event.target.value)));
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
onClick("play", play);
onClick("reset", () => {
  stop();
  show(path.start);
});
onClick("zoom-in", () => inUse().forEach((picture) => picture.zoom(1 / 1.5)));
onClick("zoom-out", () => inUse().forEach((picture) => picture.zoom(1.5)));
onClick("zoom-off", () => inUse().forEach((picture) => picture.unzoom()));
onClick("compare", compare);
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
for (const root of [...pictures.map((picture) => picture.root), element("curves")]) resized.observe(root);

const hasLongNames = featureNames.some((name) => name.length > LONG_NAME);
document.body.classList.toggle("long-names", hasLongNames);
pictures.forEach(attachPointer);
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
