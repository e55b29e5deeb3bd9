// Mouse, finger and keyboard on a picture.

const NEAR = 12; // pixels within which a point is meant
const STILL = 4; // pixels that a click may move

function nearest(picture, x, y, reach) {
  let best = null,
    least = reach * reach;
  for (let i = N - 1; i >= 0; i--) {
    // what is drawn last is on top
    if (!isShown(i)) continue;
    const [px, py] = picture.pixel(i),
      distance = (px - x) ** 2 + (py - y) ** 2;
    if (distance < least) [best, least] = [i, distance];
  }
  return best;
}

// The next point in a direction, at most 45 degrees to its side; from the middle if there is no point yet.
function nextPoint(picture, [ux, uy]) {
  const { mark, frame } = picture;
  if (mark === null || !picture.inView(mark)) return nearest(picture, frame.width / 2, frame.height / 2, Infinity);
  const [x, y] = picture.pixel(mark);
  let best = mark,
    least = Infinity;
  for (let i = 0; i < N; i++) {
    if (i === mark || !picture.inView(i)) continue;
    const [px, py] = picture.pixel(i),
      along = (px - x) * ux + (py - y) * uy,
      aside = Math.abs((px - x) * uy - (py - y) * ux);
    if (along > 0 && aside <= along && along + aside < least) [best, least] = [i, along + aside];
  }
  return best;
}

function isInside(corners, x, y) {
  let inside = false;
  for (let k = 0, before = corners.length - 1; k < corners.length; before = k++) {
    const [ax, ay] = corners[k],
      [bx, by] = corners[before];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}

function showTooltip(picture) {
  const { tooltip, mark, frame, root } = picture;
  tooltip.hidden = mark === null;
  if (mark === null) return;
  tooltip.textContent = describePoint(picture, mark).join("\n");
  const [x, y] = picture.pixel(mark),
    at = (value, size, whole) => Math.max(0, value + 14 + size > whole ? value - 14 - size : value + 14);
  tooltip.style.left = `${at(frame.left + x, tooltip.offsetWidth, root.clientWidth)}px`;
  tooltip.style.top = `${at(frame.top + y, tooltip.offsetHeight, root.clientHeight)}px`;
}

function describePoint(picture, i) {
  // What readers take away, and what colours the points.
  const told = known.filter((column) => column.heading || column === state.column),
    texts = told.filter((column) => column.textOf(i)).map((column) => `${column.name}: ${column.textOf(i)}`),
    lines = [nameOf(i), ...(isControl(i) || !texts.length ? [groupName(i)] : []), ...texts];
  picture.axes.forEach((axis, j) => lines.push(`${componentName(axis)}: ${short([picture.x, picture.y][j][i], 3)}`));
  const { scale } = state;
  if (scale?.feature !== undefined) {
    const shade = scale.shades[i],
      value = scale.low + (shade / 254) * (scale.high - scale.low);
    lines.push(`${scale.name}: ${shade === 255 ? "missing" : `about ${short(value, 3)}`}`);
  }
  return lines;
}

function setMark(picture, i) {
  if (picture.mark === i) return;
  picture.mark = i;
  picture.drawOverlay();
  showTooltip(picture);
}

function attachPointer(picture) {
  const { root } = picture;
  let start = null,
    last = null,
    view = null,
    moved = false;

  const at = (event) => {
    const box = root.getBoundingClientRect();
    return [event.clientX - box.left - picture.frame.left, event.clientY - box.top - picture.frame.top];
  };

  root.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    [start, moved] = [at(event), false];
    last = start;
    view = [picture.frame.x, picture.frame.y];
    if (state.mode) root.setPointerCapture(event.pointerId);
  });

  root.addEventListener("pointermove", (event) => {
    const here = at(event);
    if (start === null || !state.mode) return setMark(picture, nearest(picture, ...here, NEAR));
    moved ||= Math.hypot(here[0] - start[0], here[1] - start[1]) > STILL;
    if (!moved) return;
    setMark(picture, null);
    if (state.mode === "move") {
      const dx = ((here[0] - start[0]) / picture.frame.width) * (view[0][1] - view[0][0]);
      const dy = ((here[1] - start[1]) / picture.frame.height) * (view[1][1] - view[1][0]);
      picture.view = [view[0].map((value) => value - dx), view[1].map((value) => value + dy)];
      picture.draw();
    } else if (state.mode === "zoom") {
      picture.lasso = [start, [here[0], start[1]], here, [start[0], here[1]]];
    } else if (Math.hypot(here[0] - last[0], here[1] - last[1]) > 2) {
      (picture.lasso ??= [start]).push(here);
    }
    last = here;
    picture.drawOverlay();
  });

  const end = (event) => {
    const corners = picture.lasso,
      clicked = start !== null && !moved && event.type === "pointerup";
    const from = start;
    [start, picture.lasso] = [null, null];
    if (clicked) {
      const i = nearest(picture, ...at(event), NEAR);
      setMark(picture, i);
      if (i !== null) choosePoint(i, event.shiftKey);
    } else if (corners && state.mode === "zoom" && from) {
      zoomTo(picture, corners[0], corners[2]);
    } else if (corners && state.mode === "select") {
      chooseWhere((i) => picture.inView(i) && isInside(corners, ...picture.pixel(i)), event.shiftKey);
    }
    picture.drawOverlay();
  };
  root.addEventListener("pointerup", end);
  root.addEventListener("pointercancel", end);
  root.addEventListener("pointerleave", () => {
    if (start === null) setMark(picture, null);
  });
  root.addEventListener("dblclick", () => picture.unzoom());
  root.addEventListener("blur", () => setMark(picture, null));
  root.addEventListener("keydown", (event) => {
    if (pressKey(picture, event)) event.preventDefault();
  });
}

function zoomTo(picture, [ax, ay], [bx, by]) {
  if (Math.abs(ax - bx) < STILL || Math.abs(ay - by) < STILL) return;
  const { frame } = picture,
    sorted = (a, b) => (a < b ? [a, b] : [b, a]);
  picture.view = [sorted(frame.xAt(ax), frame.xAt(bx)), sorted(frame.yAt(ay), frame.yAt(by))];
  picture.draw();
}

const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function pressKey(picture, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  if (DIRECTIONS[event.key]) {
    setMark(picture, nextPoint(picture, DIRECTIONS[event.key]));
    if (picture.mark !== null) announce(describePoint(picture, picture.mark).join(", "));
  } else if ((event.key === "Enter" || event.key === " ") && picture.mark !== null) {
    choosePoint(picture.mark, true);
  } else if (event.key === "Escape") {
    chooseWhere(() => false, false);
  } else if (event.key === "+" || event.key === "=") {
    picture.zoom(1 / 1.5);
  } else if (event.key === "-") {
    picture.zoom(1.5);
  } else if (event.key === "0") {
    picture.unzoom();
  } else {
    return false;
  }
  return true;
}

const announce = (text) => {
  element("announce").textContent = text;
};
