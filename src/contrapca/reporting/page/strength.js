// What gamma changes: the slider, a second picture at another gamma, and the share of variance that components hold.
// A page about one gamma has nothing of this.

const calm = matchMedia("(prefers-reduced-motion: reduce)");
let timer = null;

function showReadout(picture, readout, slider) {
  const { step } = picture;
  const [cases, controls] = [path.foreground_share[step], path.background_share[step]].map(percent);
  const hold = d > 1 ? "the components hold" : "the component holds";
  readout.textContent = `${gammaText(step)}: ${hold} ${cases} of the cases' variance and ${controls} of the controls'`;
  slider.value = step;
  slider.setAttribute("aria-valuetext", gammaText(step));
}

// What follows the first picture.
function followGamma() {
  if (!element("strength")) return;
  showReadout(pictures[0], element("readout"), element("gamma"));
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

function compare() {
  const shown = element("second").hidden;
  element("second").hidden = element("second-slider").hidden = !shown;
  element("explorer").classList.toggle("two", shown);
  element("compare").setAttribute("aria-pressed", String(shown));
  redraw();
  if (shown) showSecond(pictures[1].step);
}

function attachStrength() {
  onClick("play", play);
  onClick("reset", () => {
    stop();
    show(path.start);
  });
  onClick("compare", compare);
  element("gamma").addEventListener("input", (event) => {
    stop();
    show(Number(event.target.value));
  });
  element("gamma-b").addEventListener("input", (event) => showSecond(Number(event.target.value)));
}

let markCurves = () => {}; // moves the line at the gamma of the first picture

function drawCurves() {
  const root = element("curves");
  if (!root) return;
  const svg = root.querySelector("svg"),
    width = root.clientWidth,
    height = root.clientHeight;
  if (width < 100) return;
  const { gammas, foreground_share: cases, background_share: controls, logarithmic } = path;
  const scaled = (gamma) => (logarithmic ? Math.log10(Math.max(gamma, smallestGamma())) : gamma);
  const limit = model.limit !== null && model.limit <= 1.2 * gammas.at(-1) ? model.limit : null;
  const ends = [scaled(gammas[0]), scaled(limit ?? gammas.at(-1))],
    wide = ends[1] - ends[0] || 1;
  const top = 1.05 * Math.max(...cases, ...controls, 1e-9);
  const box = { left: MARGIN.left, top: 30, width: width - MARGIN.left - 14, height: height - 30 - MARGIN.bottom };
  const frame = new Frame(box, [ends[0] - 0.02 * wide, ends[1] + 0.02 * wide], [0, top]);
  const x = (gamma) => box.left + frame.across(scaled(gamma)),
    y = (share) => box.top + frame.down(share);
  const line = (shares, kind) =>
    svgElement("path", {
      class: `curve ${kind}`,
      d: `M${gammas.map((gamma, g) => `${x(gamma)} ${y(shares[g])}`).join("L")}`,
    });
  const xFormat = logarithmic ? (value) => short(10 ** value, 2) : (value) => short(value, 6);
  const parts = axisParts(frame, "gamma", "share of variance", {
    xFormat,
    yFormat: (value) => `${short(100 * value, 3)} %`,
    grid: true,
  });
  const key = (at, kind, text) =>
    parts.push(
      svgElement("line", { class: `curve ${kind}`, x1: at, x2: at + 26, y1: 15, y2: 15 }),
      svgElement("text", { class: "number", x: at + 32, y: 19 }, text),
    );
  key(box.left, "cases", "cases");
  key(box.left + 95, "controls", "controls");
  const now = svgElement("line", { class: "now", y1: box.top, y2: box.top + box.height });
  markCurves = () => ["x1", "x2"].forEach((end) => now.setAttribute(end, x(gammas[pictures[0].step])));
  markCurves();
  parts.push(line(cases, "cases"), line(controls, "controls"), now);
  if (limit !== null)
    parts.push(
      svgElement("line", { class: "limit", x1: x(limit), x2: x(limit), y1: box.top, y2: box.top + box.height }),
      svgElement("text", { class: "number", x: x(limit), y: 19, "text-anchor": "end" }, "limit"),
    );
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren(...parts);
  const [a, b] = [cases[0], controls[0]].map(percent);
  const first = `from ${a} of the cases' and ${b} of the controls' at ${gammaText(0)}`;
  const last = `${percent(cases.at(-1))} and ${percent(controls.at(-1))} at ${gammaText(gammas.length - 1)}`;
  root.setAttribute("aria-label", `Shares of variance against gamma: ${first} to ${last}.`);
}

// On a logarithmic axis gamma = 0 stands a little left of the smallest other gamma.
const smallestGamma = () => (path.gammas.find((gamma) => gamma > 0) ?? 1) / 2;
