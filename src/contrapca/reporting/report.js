"use strict";
(() => {
  const element = (id) => document.getElementById(id);
  const read = (id) => JSON.parse(element(id).textContent);
  const summary = read("summary"), points = read("points");
  const { path, loadings } = summary, d = summary.model.n_components, N = points.n, k = points.k;

  const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const inside = new (points.bytes === 4 ? Float32Array : Float64Array)(bytes(points.inside).buffer); // N x k
  const maps = new Float64Array(bytes(points.maps).buffer); // G x k x d
  const codes = bytes(points.codes), rows = new Uint32Array(bytes(points.rows).buffer);
  const values = points.values && new Float32Array(bytes(points.values).buffer);
  const hidden = new Set();
  let step = path.start, axes = d > 1 ? [0, 1] : [0], timer = null;

  // One coordinate of every point at a gamma: inside (N x k) times a column of its map.
  function coordinate(g, axis) {
    const result = new Float64Array(N), column = new Float64Array(k);
    for (let j = 0; j < k; j++) column[j] = maps[(g * k + j) * d + axis];
    for (let i = 0, at = 0; i < N; i++) {
      let sum = 0;
      for (let j = 0; j < k; j++) sum += inside[at++] * column[j];
      result[i] = hidden.has(codes[i]) ? NaN : sum;
    }
    return result;
  }

  // With one component the height means nothing: groups in rows, points spread by a fixed pattern.
  function spread() {
    return Float64Array.from({ length: N }, (_, i) => (hidden.has(codes[i]) ? NaN : codes[i] + ((i * 0.618034) % 1) * 0.7 - 0.35));
  }

  const position = (g) => [coordinate(g, axes[0]), d > 1 ? coordinate(g, axes[1]) : spread()];

  function range(numbers) {
    let low = Infinity, high = -Infinity;
    for (const value of numbers) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
    const margin = 0.05 * (high - low || 1);
    return low > high ? [-1, 1] : [low - margin, high + margin];
  }

  const look = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const axisLook = () => ({ color: look("--ink"), gridcolor: look("--line"), zerolinecolor: look("--soft") });
  const layout = (extra) => ({
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: look("--ink"), size: 13 },
    margin: { l: 55, r: 15, t: 15, b: 45 }, showlegend: false, hovermode: "closest", ...extra,
  });
  const config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };
  const axisTitle = (axis) => ({ text: `component ${axis}` });

  function hasWebGL() {
    try {
      return Boolean(document.createElement("canvas").getContext("webgl"));
    } catch {
      return false;
    }
  }

  function markers() {
    const entries = Array.from(codes, (code) => points.groups[code]), symbols = entries.map((entry) => entry.symbol);
    const marker = {
      size: N > 5000 ? 4 : 6, opacity: 0.8, color: entries.map((entry) => entry.colour),
      symbol: new Set(symbols).size > 1 ? symbols : symbols[0], // one for all is drawn much faster
    };
    if (!values) return marker;
    // Controls first: they have no value and keep their own colour, so cases alone are on the scale.
    const finite = values.filter(Number.isFinite);
    const low = finite.reduce((a, b) => Math.min(a, b), Infinity), high = finite.reduce((a, b) => Math.max(a, b), -Infinity);
    marker.color = Array.from(codes, (code, i) => (code === 0 ? points.groups[0].colour : onScale(values[i - points.n_background], low, high)));
    return marker;
  }

  // From blue through grey to orange: readable with any colour vision, on light and dark paper.
  const SCALE = [[0, 90, 181], [150, 150, 150], [230, 120, 0]];
  function onScale(value, low, high) {
    if (!Number.isFinite(value)) return points.groups[0].colour;
    const t = 2 * (high > low ? (value - low) / (high - low) : 0.5), from = t < 1 ? 0 : 1;
    const mixed = SCALE[from].map((c, j) => Math.round(c + (t - from) * (SCALE[from + 1][j] - c)));
    return `rgb(${mixed.join(",")})`;
  }

  function drawScatter() {
    const [x, y] = position(step);
    const vertical = d > 1 ? { title: axisTitle(axes[1]) } : { showticklabels: false, zeroline: false, showgrid: false };
    return Plotly.newPlot("scatter", [{ type: hasWebGL() ? "scattergl" : "scatter", mode: "markers", x, y, marker: markers(), hoverinfo: "none" }], layout({
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
        const [name, , value] = row.children, fill = row.querySelector(".fill"), width = (50 * Math.abs(loading[i])) / largest;
        name.textContent = loadings.features[feature[i]];
        value.textContent = Number(loading[i].toPrecision(3)).toString();
        fill.style.width = `${width}%`;
        fill.style.left = `${loading[i] < 0 ? 50 - width : 50}%`;
        fill.style.background = `var(${loading[i] < 0 ? "--negative" : "--positive"})`;
      });
    });
  }

  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  function showReadout() {
    const text = `gamma = ${Number(path.gammas[step].toPrecision(4))}: ${percent(path.foreground_share[step])} of the cases' variance, ${percent(path.background_share[step])} of the controls'`;
    element("readout").textContent = text;
    element("gamma").setAttribute("aria-valuetext", text);
  }

  function movePoints() {
    const [x, y] = position(step);
    return Plotly.update("scatter", { x: [x], y: [y] }, { "xaxis.range": range(x), "yaxis.range": range(y) }, [0]);
  }

  function show(g) {
    step = g;
    element("gamma").value = g;
    showReadout();
    movePoints();
    showLoadings();
    requestAnimationFrame(() => Plotly.relayout("curves", { "shapes[0].x0": path.gammas[step], "shapes[0].x1": path.gammas[step] }));
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    element("play").textContent = "▶ Play";
    element("play").setAttribute("aria-pressed", "false");
  }

  function play() {
    if (timer !== null) return stop();
    const last = path.gammas.length - 1;
    if (step === last) show(0);
    element("play").textContent = "⏸ Pause";
    element("play").setAttribute("aria-pressed", "true");
    timer = setInterval(() => (step < last ? show(step + 1) : stop()), 150);
  }

  const MARKS = { circle: "●", diamond: "◆", square: "■", "triangle-up": "▲" };
  function makeLegend() {
    points.groups.forEach((group, code) => {
      const button = document.createElement("button"), mark = document.createElement("span");
      button.type = "button";
      button.className = "group";
      button.setAttribute("aria-pressed", "true");
      mark.textContent = `${MARKS[group.symbol]} `;
      if (values && code > 0) mark.style.cssText = `background:linear-gradient(90deg,${SCALE.map((c) => `rgb(${c.join(",")})`).join(",")});color:transparent`;
      else mark.style.color = group.colour;
      button.append(mark, `${group.name} (${group.count.toLocaleString("en")})`);
      button.addEventListener("click", () => {
        const shown = button.getAttribute("aria-pressed") === "true";
        button.setAttribute("aria-pressed", String(!shown));
        shown ? hidden.add(code) : hidden.delete(code);
        movePoints();
      });
      element("legend").append(button);
    });
  }

  // Names are shown as text by an element of our own: the plotting library would take markup in them for its own.
  function nameOf(i) {
    const background = i < points.n_background, names = points.names[background ? "background" : "foreground"];
    const own = names && names[background ? i : i - points.n_background];
    return own ?? `${background ? "control" : "case"}, row ${rows[i]}`;
  }

  function showTooltip(event) {
    const point = event.points[0], tooltip = element("tooltip"), i = point.pointNumber, code = codes[i];
    const value = values && code > 0 ? [`label ${Number(values[i - points.n_background].toPrecision(4))}`] : [];
    const place = axes.map((axis, j) => `component ${axis}: ${Number([point.x, point.y][j].toPrecision(3))}`);
    tooltip.textContent = [nameOf(i), points.groups[code].name, ...value, ...place].join("\n");
    tooltip.hidden = false;
    const box = element("scatter").getBoundingClientRect(), left = event.event.clientX - box.left, top = event.event.clientY - box.top;
    tooltip.style.left = `${Math.max(0, Math.min(left + 14, box.width - tooltip.offsetWidth - 4))}px`;
    tooltip.style.top = `${Math.max(0, Math.min(top + 14, box.height - tooltip.offsetHeight - 4))}px`;
  }

  async function draw() {
    await Promise.all([drawScatter(), drawCurves()]);
    element("scatter").on("plotly_hover", showTooltip);
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
