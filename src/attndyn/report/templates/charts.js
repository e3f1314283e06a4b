"use strict";
// Draws each chart at the width of its place, in the light or the dark theme.
(() => {
  const look = JSON.parse(document.getElementById("look").textContent);
  const dark = matchMedia("screen and (prefers-color-scheme: dark)");
  const charts = [...document.querySelectorAll(".chart")].map((place) => ({
    place,
    spec: JSON.parse(place.querySelector("script").textContent),
  }));

  const longest = (texts) => Math.max(...texts.map((text) => text.length));

  function fitted(spec, width) {
    spec = structuredClone(spec);
    spec.config = { ...look[dark.matches ? "dark" : "light"].config, background: "transparent" };
    for (const { encoding } of (spec.spec ?? spec).layer) {
      const legend = encoding.color?.legend;
      if (legend) legend.columns = Math.max(1, Math.floor((width - 60) / (40 + 8 * longest(legend.values))));
    }
    if (spec.spec) {
      // Small multiples: Vega cannot fit these by itself. The pixels taken off hold the axis and the gaps.
      spec.columns = Math.max(1, Math.min(3, spec.facet.sort.length, Math.floor(width / 300)));
      spec.spec.width = Math.max(160, (width - 70) / spec.columns - 24);
      spec.spec.height = 180;
    } else {
      spec.width = width;
      spec.height = width < 500 ? 220 : 320;
      spec.autosize = { type: "fit-x", contains: "padding" };
    }
    return spec;
  }

  function draw() {
    for (const { place, spec } of charts) {
      const width = place.clientWidth;
      // ast: expressions are interpreted, so that the page needs no eval.
      vegaEmbed(place, fitted(spec, width), { ast: true, actions: false, renderer: "svg", tooltip: { theme: dark.matches ? "dark" : "light" } });
    }
  }

  let width = innerWidth;
  let waiting;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(draw, 150);
  });
  dark.addEventListener("change", draw);
  draw();
})();
