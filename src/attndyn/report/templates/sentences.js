"use strict";
// Colours the words of sentences at the chosen step. The words themselves stand in the page already.
(() => {
  const two = (value) => String(Number(value.toPrecision(2))).replace("-", "−");

  function paint(word, level, { peak, most, signed }) {
    let share = signed ? (level - 128) / 127 : (level - 1) / 254;
    if (level === 0 || Math.abs(share) < 0.01) share = 0;
    word.style.setProperty("--s", Math.min(1, Math.abs(share) * Math.sqrt(peak / most)).toFixed(2));
    word.classList.toggle("below", share < 0);
    word.dataset.n = level === 0 ? "undefined" : two(peak * share * Math.abs(share));
  }

  // A word that is pointed at is marked in every scoring of its sentence; a fold opens in all of them.
  function together(lines) {
    for (const { line, words } of lines) {
      const mark = (place) =>
        lines.forEach((other) => other.words.forEach((word, i) => word.classList.toggle("at", i === place)));
      line.addEventListener("pointerover", (event) => mark(words.indexOf(event.target)));
      line.addEventListener("pointerleave", () => mark(-1));
      const fold = line.querySelector("details");
      fold?.addEventListener("toggle", () =>
        lines.forEach((other) => (other.line.querySelector("details").open = fold.open)));
    }
  }

  function start(root) {
    const data = JSON.parse(root.querySelector("script").textContent);
    const sentences = [...root.querySelectorAll(".sentence")].map((sentence, n) =>
      [...sentence.querySelectorAll(".line")].map((line, i) => ({
        line,
        words: [...line.querySelectorAll("i")],
        ownStep: line.parentElement.querySelector(".own-step"),
        scoring: data.scorings[i],
        levels: bytes(data.levels[n][i]),
      })));
    sentences.forEach(together);

    const show = stepper(root, data, (step) => {
      for (const { words, ownStep, scoring, levels } of sentences.flat()) {
        const frame = frameAt(scoring.steps, step);
        const own = scoring.steps[frame];
        ownStep.textContent = own === step ? "" : "step " + own;
        words.forEach((word, l) => paint(word, levels[frame * words.length + l], scoring));
      }
    });
    show();
  }

  document.querySelectorAll(".sentences:has(> script)").forEach(start);
})();
