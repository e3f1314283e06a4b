"use strict";
// Draws attention and probe maps. Tokens reach the page as canvas text or textContent only, never as HTML.
(() => {
  const look = JSON.parse(document.getElementById("look").textContent);
  const dark = matchMedia("screen and (prefers-color-scheme: dark)");
  const views = [];

  const mode = () => look[dark.matches ? "dark" : "light"];
  const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);

  // 256 colours between the stops of the ramp; a byte is 255·√value, so it is its own index.
  function colours() {
    const stops = mode().ramp.map((hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
    return Array.from({ length: 256 }, (_, level) => {
      const place = (level / 255) * (stops.length - 1);
      const left = Math.min(Math.floor(place), stops.length - 2);
      return stops[left].map((a, i) => Math.round(a + (stops[left + 1][i] - a) * (place - left)));
    });
  }

  const short = (text) => (text.length > 7 ? text.slice(0, 6) + "…" : text);
  const shown = (level) => {
    const value = (level / 255) ** 2;
    return value.toFixed(value < 0.1 ? 3 : 2);
  };

  function sized(canvas, width, height) {
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    return context;
  }

  function raster(levels, offset, rows, columns, table) {
    const image = new ImageData(columns, rows);
    for (let i = 0; i < rows * columns; i++) {
      const [r, g, b] = table[levels[offset + i]];
      image.data.set([r, g, b, 255], 4 * i);
    }
    const small = document.createElement("canvas");
    small.width = columns;
    small.height = rows;
    small.getContext("2d").putImageData(image, 0, 0);
    return small;
  }

  // Cells as large as fit; tokens as labels where a cell is as high as a line of text, else every tenth position.
  function layout(panel, width) {
    const rows = panel.outputs.length;
    const columns = panel.inputs.length;
    const fit = (gutter) => Math.min(Math.floor((width - gutter) / columns), Math.max(8, Math.floor(360 / rows)), 28);
    const room = (texts) => 10 + 7 * Math.max(...texts.map((text) => short(text).length));
    const tokens = fit(room(panel.outputs)) >= 11;
    const left = tokens ? room(panel.outputs) : 24;
    return { rows, columns, tokens, left, top: tokens ? room(panel.inputs) : 18, cell: Math.max(3, fit(left)) };
  }

  function labels(context, panel, { rows, columns, tokens, left, top, cell }) {
    context.fillStyle = ink("--soft");
    context.font = `${tokens ? Math.min(12, cell) : 10}px ui-sans-serif, system-ui, sans-serif`;
    context.textBaseline = "middle";
    const text = (list, i) => (tokens ? short(list[i]) : i === 0 || (i + 1) % 10 === 0 ? String(i + 1) : "");
    for (let t = 0; t < rows; t++) {
      context.textAlign = "right";
      context.fillText(text(panel.outputs, t), left - 5, top + (t + 0.5) * cell);
    }
    for (let l = 0; l < columns; l++) {
      context.save();
      context.translate(left + (l + 0.5) * cell, top - 5);
      if (tokens) context.rotate(-Math.PI / 2);
      context.textAlign = tokens ? "left" : "center";
      if (!tokens) context.textBaseline = "bottom";
      context.fillText(text(panel.inputs, l), 0, 0);
      context.restore();
    }
  }

  function drawMap(view, index, table) {
    const { panel, canvases, levels, place, frame } = view;
    const { rows, columns, left, top, cell } = place;
    const context = sized(canvases[index], left + columns * cell + 2, top + rows * cell + 2);
    labels(context, panel, place);
    context.imageSmoothingEnabled = false;
    const offset = frame * rows * columns;
    context.drawImage(raster(levels[index], offset, rows, columns, table), left, top, columns * cell, rows * cell);
    context.strokeStyle = ink("--line");
    context.strokeRect(left - 0.5, top - 0.5, columns * cell + 1, rows * cell + 1);
    if (view.marked) {
      context.strokeStyle = ink("--mark");
      for (const [dashes, cells] of [[[], panel.sure], [[2, 2], panel.possible]]) {
        context.setLineDash(dashes);
        for (const [t, l] of cells) context.strokeRect(left + l * cell + 0.5, top + t * cell + 0.5, cell - 1, cell - 1);
      }
      context.setLineDash([]);
    }
    if (view.at) {
      context.strokeStyle = ink("--ink");
      context.lineWidth = 2;
      context.strokeRect(left + view.at.l * cell, top + view.at.t * cell, cell, cell);
    }
  }

  function drawPanel(view) {
    const table = colours();
    view.place = layout(view.panel, view.canvases[0].parentElement.clientWidth);
    view.canvases.forEach((_, index) => drawMap(view, index, table));
    const own = view.panel.steps[view.frame];
    view.stepText.textContent = own === view.step ? "" : "step " + own;
    view.readout.textContent = view.at ? reading(view) : "Point at a cell to read it.";
  }

  function reading({ panel, levels, kinds, frame, at }) {
    const rows = panel.outputs.length;
    const columns = panel.inputs.length;
    const values = kinds.map((kind, i) => `${kind} ${shown(levels[i][(frame * rows + at.t) * columns + at.l])}`);
    return `t = ${at.t + 1} “${panel.outputs[at.t]}”, l = ${at.l + 1} “${panel.inputs[at.l]}”: ${values.join(" · ")}`;
  }

  function point(view, t, l) {
    const { rows, columns } = view.place;
    const inside = t >= 0 && l >= 0 && t < rows && l < columns;
    view.at = inside ? { t, l } : null;
    drawPanel(view);
  }

  function listen(view) {
    const arrows = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    for (const canvas of view.canvases) {
      canvas.addEventListener("pointermove", (event) => {
        const { left, top, cell } = view.place;
        point(view, Math.floor((event.offsetY - top) / cell), Math.floor((event.offsetX - left) / cell));
      });
      canvas.addEventListener("pointerleave", () => point(view, -1, -1));
      canvas.addEventListener("keydown", (event) => {
        const move = arrows[event.key];
        if (!move) return;
        event.preventDefault();
        const { rows, columns } = view.place;
        const { t, l } = view.at || { t: -move[0], l: -move[1] };
        point(view, Math.min(rows - 1, Math.max(0, t + move[0])), Math.min(columns - 1, Math.max(0, l + move[1])));
      });
    }
  }

  function start(root) {
    const data = JSON.parse(root.querySelector("script").textContent);
    const mark = root.querySelector("input[type=checkbox]");
    const mine = [...root.querySelectorAll(".panel")].map((figure, i) => ({
      panel: data.panels[i],
      kinds: data.kinds,
      levels: data.panels[i].levels.map(bytes),
      canvases: [...figure.querySelectorAll("canvas")],
      readout: figure.querySelector(".readout"),
      stepText: figure.querySelector(".panel-step"),
    }));

    const show = stepper(root, data, (step) => {
      for (const view of mine) {
        view.frame = frameAt(view.panel.steps, step);
        view.step = step;
        view.marked = mark?.checked ?? false;
        drawPanel(view);
      }
    });
    mark?.addEventListener("change", show);
    mine.forEach(listen);
    views.push({ root, show });
  }

  function drawAll() {
    for (const { root, show } of views) {
      const context = sized(root.querySelector(".ramp-bar"), 120, 10);
      colours().forEach(([r, g, b], level) => {
        context.fillStyle = `rgb(${r} ${g} ${b})`;
        context.fillRect((level / 256) * 120, 0, 1, 10);
      });
      show();
    }
  }

  document.querySelectorAll(".maps").forEach(start);
  addEventListener("resize", drawAll);
  dark.addEventListener("change", drawAll);
  drawAll();
})();
