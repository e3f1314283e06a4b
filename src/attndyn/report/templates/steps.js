"use strict";
// What every part with a step slider shares.

const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

// The last of its own steps that a curve or a map has reached.
const frameAt = (steps, step) => Math.max(0, steps.findLastIndex((own) => own <= step));

// Wires the slider and the play button; draw(step) is called for each step that is chosen. Gives what draws it again.
function stepper(root, { steps, slider: { name, per } }, draw) {
  const FRAME_MS = 120;
  const slider = root.querySelector("input[type=range]");
  const play = root.querySelector(".play");
  let timer = null;

  function show() {
    const step = steps[slider.value];
    root.querySelector(".step").textContent = step / per;
    slider.setAttribute("aria-valuetext", name + " " + step / per);
    draw(step);
  }
  function pause() {
    clearInterval(timer);
    timer = null;
    play.textContent = "▶";
    play.setAttribute("aria-label", "play the steps");
  }
  play.addEventListener("click", () => {
    if (timer) return pause();
    if (slider.value === slider.max) slider.value = 0;
    play.textContent = "❚❚";
    play.setAttribute("aria-label", "pause");
    timer = setInterval(() => {
      slider.value = Number(slider.value) + 1;
      show();
      if (slider.value === slider.max) pause();
    }, FRAME_MS);
  });
  slider.addEventListener("input", () => {
    pause();
    show();
  });
  return show;
}
