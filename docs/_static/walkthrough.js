// The steps of a walkthrough, one at a time. Without this script, on paper, and in a browser that lacks what the
// layout needs, all of them stand under each other, as the page was written.
"use strict";
(() => {
  // posbook.frequencies and posbook.sinusoidal once more; tests/browser/test_walkthrough.py compares the two.
  const clocks = {
    frequencies: (width, base) => Array.from({ length: width / 2 }, (_, i) => base ** (-2 * i / width)),
    encode: (position, theta) => theta.flatMap(t => [Math.sin(position * t), Math.cos(position * t)]),
    shift: (row, k, theta) => theta.flatMap((t, i) => {
      const [sin, cos] = row.slice(2 * i, 2 * i + 2), s = Math.sin(k * t), c = Math.cos(k * t);
      return [c * sin + s * cos, c * cos - s * sin];
    }),
    dot: (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0),
    apart: (a, b) => Math.hypot(...a.map((x, i) => x - b[i])),
    // How far the hand of each clock has turned since it last stood at twelve.
    degrees: (position, theta) => theta.map(t => ((position * t * 180) / Math.PI) % 360),
  };

  const shown = (x, digits = 2) => (Math.abs(x) < 0.5 / 10 ** digits ? 0 : x).toFixed(digits).replace("-", "−");
  const angles = list => list.map(x => shown(x, 0) + "°").join(", ");

  // What the steps say of the word at position p. `s` holds the numbers that the script reported.
  function reading(step, p, s) {
    const words = s.sentence.split(" "), theta = clocks.frequencies(s.width, s.base);
    const row = clocks.encode(p, theta), first = clocks.encode(0, theta);
    const one = [2 * Math.PI / s.period], pair = clocks.encode(p, one);
    const far = clocks.dot(clocks.encode(p + s.further, theta), clocks.encode(s.further, theta));
    const moves = x => shown(x * Math.sqrt(s.width));
    return [
      () => `Its row is ${shown(words[p] === words[0] ? 0 : s.words_apart)} from row 0.`,
      () => `The index adds ${p} to each number and moves the row by ${moves(p)}.`,
      () => `In this text ${shown(p / words.length)}, which moves the row by ${moves(p / words.length)}; ` +
        `in one of ${s.longer} it is ${shown(p / s.longer)}, which moves it by ${moves(p / s.longer)}.`,
      () => `The hand stands at ${angles(clocks.degrees(p, one))}: sine ${shown(pair[0])}, ` +
        `cosine ${shown(pair[1])}. That is ${shown(clocks.apart(pair, clocks.encode(0, one)))} from position 0.`,
      () => `The hands stand at ${angles(clocks.degrees(p, theta))}. ` +
        `That is ${shown(clocks.apart(row, first))} from position 0.`,
      () => `The hands stand at ${angles(clocks.degrees(p, theta))}, and ${s.shift} tokens later ` +
        `${angles(clocks.degrees(s.shift, theta))} further on.`,
      () => `Its product with row 0 is ${shown(clocks.dot(row, first))}; ` +
        `${s.further} tokens later it is ${shown(far)}. The offset is ${p} both times.`,
    ][step - 1]();
  }

  function make(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  class WalkThrough extends HTMLElement {
    static clocks = clocks;
    static reading = reading;

    connectedCallback() {
      if (this.steps || !CSS.supports("grid-template-rows", "subgrid")) return;
      this.settings = JSON.parse(this.dataset.settings);
      this.steps = [...this.querySelectorAll(".step")];
      this.titles = this.steps.map(step => step.querySelector("h3").lastChild.textContent.trim());
      this.now = 0;
      this.chosen = null;
      this.build();
      this.listen();
      const named = this.named();
      this.go(named || 1);
      this.said.textContent = "";  // nobody asked yet
      this.classList.add("live");
      // The browser went there while the steps still stood under each other.
      if (named) this.scrollIntoView({ behavior: "instant" });
    }

    build() {
      this.style.setProperty("--aspect", this.settings.aspect);
      this.tabIndex = -1;  // after a click anywhere in it the arrow keys work
      this.previous = make("button", { type: "button", class: "previous" }, "Previous");
      this.next = make("button", { type: "button", class: "next" }, "Next");
      this.links = this.titles.map((title, i) =>
        make("a", { href: `#step-${i + 1}`, "aria-label": `Step ${i + 1}: ${title}` }, `${i + 1}`));
      const numbers = make("ol", { class: "numbers", role: "list" }, ...this.links.map(link => make("li", {}, link)));
      const controls = make("div", { class: "controls", role: "group", "aria-label": "Steps" },
        this.previous, numbers, this.next);

      // A button over each row of the picture: the rows lie in the same place in every step.
      const { sentence, rows_from: from, rows_to: to } = this.settings;
      const words = sentence.split(" "), height = 100 * (to - from) / words.length;
      this.words = words.map((word, p) => make("button", {
        type: "button", "aria-pressed": "false", "aria-label": `${word}, position ${p}`,
        style: `top: ${100 * from + p * height}%; height: ${height}%`,
      }));
      this.rows = make("div", { class: "rows", role: "group", "aria-label": "Follow a word" }, ...this.words);
      this.read = make("p", { class: "reading", "aria-live": "polite" });
      this.said = make("p", { class: "said", "aria-live": "polite" });
      this.stage = make("div", { class: "stage" }, this.rows, this.read, ...this.steps);
      this.replaceChildren(controls, this.stage, this.said);
    }

    listen() {
      this.previous.onclick = () => this.visit(this.now - 1);
      this.next.onclick = () => this.visit(this.now + 1);
      this.links.forEach((link, i) => link.addEventListener("click", event => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;  // a new tab or window
        event.preventDefault();
        this.visit(i + 1);
      }));
      this.words.forEach((button, p) => {
        button.onclick = () => this.choose(p === this.chosen ? null : p);
      });
      this.addEventListener("keydown", event => {
        if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
        const to = { ArrowLeft: this.now - 1, ArrowRight: this.now + 1, Home: 1, End: this.steps.length }[event.key];
        if (to !== undefined) this.visit(to);
        else if (event.key === "Escape" && this.chosen !== null) this.choose(null);
        else return;
        event.preventDefault();
      });
      let start = null;
      this.stage.addEventListener("pointerdown", event => {
        start = event.isPrimary && event.pointerType !== "mouse" ? event : null;
      });
      this.stage.addEventListener("pointercancel", () => { start = null; });
      this.stage.addEventListener("pointerup", event => {
        if (!start || event.pointerId !== start.pointerId) return;
        const across = event.clientX - start.clientX, down = event.clientY - start.clientY;
        start = null;
        if (Math.abs(across) > 40 && Math.abs(across) > 2 * Math.abs(down))
          this.visit(this.now - Math.sign(across));
      });
      const follow = () => this.go(this.named() ?? this.now);
      window.addEventListener("popstate", follow);
      window.addEventListener("hashchange", follow);
    }

    // The step that the address names; the first for no fragment, null where it means something else.
    named() {
      if (!location.hash) return this.now ? 1 : null;
      const step = Number(/^#step-(\d+)$/.exec(location.hash)?.[1]);
      return step >= 1 && step <= this.steps.length ? step : null;
    }

    // The reader's own step stands in the address, so that it can be sent, and undone by "back".
    visit(step) {
      if (step < 1 || step > this.steps.length || step === this.now) return;
      history.pushState(null, "", `#step-${step}`);
      this.go(step);
    }

    go(step) {
      if (step === this.now) return;
      // Focus in a step that is about to go would be lost.
      if (this.steps.some(each => each.contains(document.activeElement))) this.links[step - 1].focus();
      this.now = step;
      this.steps.forEach((each, i) => each.classList.toggle("now", i + 1 === step));
      this.links.forEach((link, i) => {
        if (i + 1 === step) link.setAttribute("aria-current", "step");
        else link.removeAttribute("aria-current");
      });
      // Not `disabled`: a button that is disabled loses the focus.
      this.previous.setAttribute("aria-disabled", step === 1);
      this.next.setAttribute("aria-disabled", step === this.steps.length);
      this.said.textContent = `Step ${step} of ${this.steps.length}: ${this.titles[step - 1]}`;
      this.tell();
    }

    choose(position) {
      this.chosen = position;
      this.words.forEach((button, p) => button.setAttribute("aria-pressed", p === position));
      this.rows.classList.toggle("chosen", position !== null);
      this.tell();
    }

    tell() {
      const p = this.chosen;
      if (p === null) this.read.textContent = "Choose a row of the picture to follow its word from step to step.";
      else this.read.replaceChildren(
        make("strong", {}, `“${this.settings.sentence.split(" ")[p]}”, position ${p}. `),
        reading(this.now, p, this.settings));
    }
  }

  customElements.define("walk-through", WalkThrough);
})();
