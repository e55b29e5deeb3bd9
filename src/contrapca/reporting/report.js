"use strict";
(() => {
  const element = (id) => document.getElementById(id);
  const read = (id) => JSON.parse(element(id).textContent);
  const summary = read("summary"), points = read("points");
  const { path, loadings } = summary, d = summary.model.n_components, N = points.n, k = points.k;

  const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const inside = new (points.bytes === 4 ? Float32Array : Float64Array)(bytes(points.inside).buffer); // N x k
  const maps = new Float64Array(bytes(points.maps).buffer); // G x k x d
  const rows = new Uint32Array(bytes(points.rows).buffer);
  const values = points.values && new Float64Array(bytes(points.values).buffer); // values of cases, NaN without a label
  let first = 0;
  const groups = points.groups.map((group) => ({ ...group, from: first, to: (first += group.count) })); // ranges of points
  const hidden = new Set();
  let step = path.start, axes = d > 1 ? [0, 1] : [0], timer = null;

  // One coordinate of every point at a gamma: inside (N x k) times a column of its map.
  function coordinate(g, axis) {
    const result = new Float64Array(N), column = new Float64Array(k);
    for (let j = 0; j < k; j++) column[j] = maps[(g * k + j) * d + axis];
    for (let i = 0, at = 0; i < N; i++) {
      let sum = 0;
      for (let j = 0; j < k; j++) sum += inside[at++] * column[j];
      result[i] = sum;
    }
    return result;
  }

  // With one component the height has no meaning: groups in rows, points spread by a fixed pattern.
  function spread() {
    const result = new Float64Array(N);
    groups.forEach(({ from, to }, height) => {
      for (let i = from; i < to; i++) result[i] = height + ((i * 0.618034) % 1) * 0.7 - 0.35;
    });
    return result;
  }

  const position = (g) => [coordinate(g, axes[0]), d > 1 ? coordinate(g, axes[1]) : spread()];
  const byGroup = (numbers) => groups.map(({ from, to }) => numbers.subarray(from, to));

  // The range of the visible groups, with a margin.
  function range(numbers) {
    let low = Infinity, high = -Infinity;
    groups.forEach(({ from, to }, code) => {
      for (let i = from; i < to && !hidden.has(code); i++) {
        if (numbers[i] < low) low = numbers[i];
        if (numbers[i] > high) high = numbers[i];
      }
    });
    const margin = 0.05 * (high - low || 1);
    return low > high ? [-1, 1] : [low - margin, high + margin];
  }

  const look = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const axisLook = () => ({ color: look("--ink"), gridcolor: look("--line"), zerolinecolor: look("--soft") });
  const byTouch = matchMedia("(pointer: coarse)").matches; // fingers scroll the page; buttons zoom
  const layout = (extra) => ({
    dragmode: byTouch ? false : "zoom",
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: look("--ink"), size: 13 },
    margin: { l: 55, r: 15, t: 15, b: 45 }, showlegend: false, hovermode: "closest", ...extra,
  });
  // Our own list of buttons: the library's default has one that uploads the chart.
  const buttons = [["toImage"], ["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"]];
  const config = { responsive: true, displaylogo: false, plotlyServerURL: "", modeBarButtons: buttons };
  const axisTitle = (axis) => ({ text: `component ${axis}` });

  function hasWebGL() {
    try {
      return Boolean(document.createElement("canvas").getContext("webgl"));
    } catch {
      return false;
    }
  }

  // One colour and one symbol per group: arrays would make every slider step slower.
  const marker = ({ colour, symbol, on_scale }) => ({ size: N > 5000 ? 4 : 6, opacity: 0.8, symbol, color: on_scale ? scaled() : colour });

  const finite = (values ?? new Float64Array()).filter(Number.isFinite); // they come first
  const least = finite.reduce((a, b) => Math.min(a, b), Infinity), most = finite.reduce((a, b) => Math.max(a, b), -Infinity);
  const scaled = () => Array.from(finite, onScale);

  // From blue through green to orange: safe for colour-blind readers, in light and dark mode; grey is for controls.
  const SCALE = [[30, 80, 200], [0, 158, 115], [240, 150, 0]];
  function onScale(value) {
    const t = 2 * (most > least ? (value - least) / (most - least) : 0.5), from = t < 1 ? 0 : 1;
    const mixed = SCALE[from].map((c, j) => Math.round(c + (t - from) * (SCALE[from + 1][j] - c)));
    return `rgb(${mixed.join(",")})`;
  }

  function drawScatter() {
    const [x, y] = position(step);
    const vertical = d > 1 ? { title: axisTitle(axes[1]) } : { showticklabels: false, zeroline: false, showgrid: false };
    const type = hasWebGL() ? "scattergl" : "scatter", [xs, ys] = [byGroup(x), byGroup(y)];
    const traces = groups.map((group, code) => ({ type, mode: "markers", x: xs[code], y: ys[code], marker: marker(group), hoverinfo: "none", visible: !hidden.has(code) }));
    return Plotly.newPlot("scatter", traces, layout({
      xaxis: { ...axisLook(), title: axisTitle(axes[0]), range: range(x) },
      yaxis: { ...axisLook(), ...vertical, range: range(y) },
    }), config);
  }

  function drawCurves() {
    const line = (y, name, colour, dash) => ({ x: path.gammas, y, name, mode: "lines", line: { color: colour, dash, width: 2.5 }, hovertemplate: `gamma %{x:.3g}: %{y:.1%}<extra>${name}</extra>` });
    const limit = summary.model.limit, inView = limit !== null && limit <= 1.2 * path.gammas.at(-1);
    return Plotly.newPlot("curves", [
      line(path.foreground_share, "cases", look("--positive"), "solid"),
      line(path.background_share, "controls", look("--soft"), "dash"),
    ], layout({
      showlegend: true, legend: { orientation: "h", y: 1.12 },
      xaxis: { ...axisLook(), title: { text: "gamma" }, type: path.logarithmic ? "log" : "linear" },
      yaxis: { ...axisLook(), title: { text: "share of variance" }, tickformat: ".0%", rangemode: "tozero" },
      shapes: shapes(inView),
      annotations: inView ? [{ x: path.logarithmic ? Math.log10(limit) : limit, y: 1, yref: "paper", yanchor: "top", xanchor: "right", text: "limit ", showarrow: false, font: { color: look("--negative") } }] : [],
    }), config);
  }

  const upright = (x, colour, dash) => ({ type: "line", x0: x, x1: x, y0: 0, y1: 1, yref: "paper", line: { color: colour, dash, width: 1.5 } });
  function shapes(inView) {
    const now = upright(path.gammas[step], look("--ink"), "dot");
    return inView ? [now, upright(summary.model.limit, look("--negative"), "solid")] : [now];
  }

  function showLoadings() {
    const largest = Math.max(...loadings.steps[step].flatMap((axis) => axis.loading.map(Math.abs)), 1e-300);
    element("loadings").querySelectorAll("tbody").forEach((body, axis) => {
      const { feature, loading } = loadings.steps[step][axis];
      body.querySelectorAll("tr").forEach((row, i) => {
        const [head, , value] = row.children, name = head.firstElementChild, fill = row.querySelector(".fill"), width = (50 * Math.abs(loading[i])) / largest;
        name.textContent = name.title = loadings.features[feature[i]];
        value.textContent = Number(loading[i].toPrecision(3)).toString();
        fill.style.width = `${width}%`;
        fill.style.left = `${loading[i] < 0 ? 50 - width : 50}%`;
        fill.style.background = `var(${loading[i] < 0 ? "--negative" : "--positive"})`;
      });
    });
  }

  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  function showReadout() {
    const text = `gamma = ${Number(path.gammas[step].toPrecision(4))}: the component${d > 1 ? "s hold" : " holds"} ${percent(path.foreground_share[step])} of the cases' variance and ${percent(path.background_share[step])} of the controls'`;
    element("readout").textContent = text;
    element("gamma").setAttribute("aria-valuetext", `gamma = ${Number(path.gammas[step].toPrecision(4))}`);
  }

  function movePoints() {
    const [x, y] = position(step), visible = groups.map((_, code) => !hidden.has(code));
    return Plotly.update("scatter", { x: byGroup(x), y: byGroup(y), visible }, { "xaxis.range": range(x), "yaxis.range": range(y) });
  }

  function show(g) {
    step = g;
    element("gamma").value = g;
    showReadout();
    const moved = movePoints();
    showLoadings();
    requestAnimationFrame(() => Plotly.relayout("curves", { "shapes[0].x0": path.gammas[step], "shapes[0].x1": path.gammas[step] }));
    return moved;
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
    if (step === last) show(0);
    element("play").textContent = "⏸ Pause";
    element("play").setAttribute("aria-pressed", "true");
    element("readout").setAttribute("aria-live", "off"); // otherwise screen readers would read every step
    const next = async () => {
      if (step >= last) return stop();
      await show(step + 1);
      if (timer !== null) timer = setTimeout(next, 120);
    };
    timer = setTimeout(next, 120);
  }

  const MARKS = { circle: "●", "circle-open": "○", diamond: "◆", square: "■", "triangle-up": "▲" };
  function makeLegend() {
    groups.forEach((group, code) => {
      const button = document.createElement("button"), mark = document.createElement("span");
      button.type = "button";
      button.className = "group";
      button.setAttribute("aria-pressed", "true");
      mark.textContent = `${MARKS[group.symbol]} `;
      if (group.on_scale) mark.style.cssText = `background:linear-gradient(90deg,${SCALE.map((c) => `rgb(${c.join(",")})`).join(",")});color:transparent`;
      else mark.style.color = group.colour;
      const count = group.count.toLocaleString("en"), of = group.count < group.rows ? ` of ${group.rows.toLocaleString("en")}` : "";
      const range = group.on_scale ? ` from ${Number(least.toPrecision(4))} to ${Number(most.toPrecision(4))}` : "";
      button.append(mark, `${group.name}${range} (${count}${of})`);
      button.addEventListener("click", () => {
        const shown = button.getAttribute("aria-pressed") === "true";
        button.setAttribute("aria-pressed", String(!shown));
        shown ? hidden.add(code) : hidden.delete(code);
        movePoints();
      });
      element("legend").append(button);
    });
  }

  // Names are shown as text by our own element: the plotting library would interpret markup in them.
  function nameOf(i) {
    const background = i < points.n_background, names = points.names[background ? "background" : "foreground"];
    const own = names && names[background ? i : i - points.n_background];
    return own ?? `${background ? "control" : "case"}, row ${rows[i]}`;
  }

  function showTooltip(event) {
    const point = event.points[0], tooltip = element("tooltip"), code = point.curveNumber, i = groups[code].from + point.pointNumber;
    const group = groups[code].on_scale ? `${groups[code].name} ${Number(values[i - points.n_background].toPrecision(12))}` : groups[code].name;
    const place = axes.map((axis, j) => `component ${axis}: ${Number([point.x, point.y][j].toPrecision(3))}`);
    tooltip.textContent = [nameOf(i), group, ...place].join("\n");
    tooltip.hidden = false;
    const box = element("scatter").getBoundingClientRect(), left = event.event.clientX - box.left, top = event.event.clientY - box.top;
    tooltip.style.left = `${Math.max(0, Math.min(left + 14, box.width - tooltip.offsetWidth - 4))}px`;
    tooltip.style.top = `${Math.max(0, Math.min(top + 14, box.height - tooltip.offsetHeight - 4))}px`;
  }

  async function draw() {
    await Promise.all([drawScatter(), drawCurves()]);
    element("scatter").on("plotly_hover", showTooltip);
    element("scatter").on("plotly_click", showTooltip); // for touch screens
    element("scatter").on("plotly_unhover", () => { element("tooltip").hidden = true; });
  }

  element("gamma").addEventListener("input", (event) => { stop(); show(Number(event.target.value)); });
  element("play").addEventListener("click", play);
  element("reset").addEventListener("click", () => { stop(); show(path.start); });
  ["horizontal", "vertical"].forEach((id, j) => element(id)?.addEventListener("change", (event) => {
    axes[j] = Number(event.target.value);
    movePoints();
    Plotly.relayout("scatter", { [`${"xy"[j]}axis.title.text`]: `component ${axes[j]}` });
  }));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  makeLegend();
  showReadout();
  showLoadings();
  draw().then(() => { document.documentElement.dataset.ready = "true"; });
})();
