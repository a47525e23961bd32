// What the figures that move have in common: a setting that the page's address remembers, controls bound to it,
// and handles for mouse, touch and keyboard. The static figure inside the element stays for print and for
// readers without JavaScript. A figure is a class that extends MovingFigure and gives `word`, `fields`,
// `html()`, `begin()` and `draw(before)`; what its script published as data it finds in `given`.

class MovingFigure extends HTMLElement {
  // The word by which the page's address names the figure.
  static word = "";
  // Each entry of the setting: { start, from, to } for a whole number, { start, among } for a choice.
  static fields = {};

  // A setting in which every entry is allowed, whatever came.
  static allowed(setting) {
    const kept = {};
    for (const [name, field] of Object.entries(this.fields)) {
      const value = setting[name];
      if (field.among) kept[name] = field.among.includes(value) ? value : field.start;
      else if (value === undefined || value === "" || isNaN(value)) kept[name] = field.start;
      else kept[name] = Math.min(Math.max(Math.round(Number(value)), field.from), field.to);
    }
    return kept;
  }

  // The setting in a fragment such as #dial&m=3, or null where it speaks of something else.
  static read(fragment) {
    const said = new URLSearchParams(fragment.replace(/^#/, ""));
    return said.has(this.word) ? this.allowed(Object.fromEntries(said)) : null;
  }

  // The fragment of a setting; empty for the one at the start.
  static write(setting) {
    const changed = Object.keys(this.fields).filter((name) => setting[name] !== this.fields[name].start);
    return changed.length ? `#${[this.word, ...changed.map((name) => `${name}=${setting[name]}`)].join("&")}` : "";
  }

  connectedCallback() {
    if (this.figure) return;
    const shared = this.constructor.read(location.hash);
    this.setting = shared ?? this.constructor.allowed({});
    this.motionless = matchMedia("(prefers-reduced-motion: reduce)");
    this.figure = document.createElement("div");
    this.figure.className = "moving";
    this.figure.innerHTML = this.html();
    this.append(this.figure);
    this.begin();
    this.bind();
    this.draw(null);
    // Only now, when all went well, does the static figure give way.
    this.classList.add("moves");
    if (shared) this.scrollIntoView({ block: "nearest" });
    addEventListener("hashchange", () => this.take(this.constructor.read(location.hash)));
  }

  // What the gallery script published as data.
  get given() {
    return JSON.parse(this.dataset.given ?? "null");
  }

  part(name) {
    return this.figure.querySelector(`[data-is="${name}"]`);
  }

  // Every <input name="m"> or <select name="m"> shows and sets the entry m.
  bind() {
    // While a slider is held, its scale stays: see `held` where scales are chosen.
    this.figure.addEventListener("input", ({ target }) => (this.held = target.type === "range"), true);
    this.figure.addEventListener("input", ({ target }) => {
      // While a number is being typed it may be empty, or "-".
      if (target.name in this.setting && target.value !== "") this.change({ [target.name]: target.value });
    });
    this.figure.addEventListener("change", () => {
      this.held = false;
      this.draw(this.setting);
      this.fill(true);
    });
  }

  fill(left) {
    for (const input of this.figure.querySelectorAll("[name]")) {
      const value = String(this.setting[input.name]);
      if (input.type === "radio") input.checked = input.value === value;
      else if (left || input.type !== "number" || input !== document.activeElement) input.value = value;
    }
  }

  change(entries) {
    this.take(this.constructor.allowed({ ...this.setting, ...entries }));
    this.remember();
  }

  take(setting) {
    if (!setting) return;
    const before = this.setting;
    this.setting = setting;
    this.draw(before);
  }

  // Browsers refuse an address that changes with every step of a slider, so it follows a moment later.
  remember() {
    clearTimeout(this.later);
    this.later = setTimeout(() => {
      const fragment = this.constructor.write(this.setting);
      const ours = this.constructor.read(location.hash) !== null;
      if (fragment || ours) history.replaceState(null, "", fragment || location.pathname + location.search);
    }, 250);
  }

  // Words for everyone; `aloud` where no control tells a screen reader the same by itself.
  say(text, aloud) {
    const line = this.part("says");
    line.setAttribute("aria-live", aloud ? "polite" : "off");
    line.textContent = text;
  }

  // An element with role=slider. `step` is told by how much a key moves it; `grab`, when a pointer takes hold,
  // returns what follows the pointer.
  handle(element, step, grab) {
    const keys = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };
    Object.assign(keys, { Home: -Infinity, End: Infinity });
    element.addEventListener("keydown", (event) => {
      if (!(event.key in keys) || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      step(keys[event.key] * (event.shiftKey ? 10 : 1));
    });
    // Or the browser would take the finger for scrolling; it does not ask the parts of a drawing for touch-action.
    const keep = (event) => event.target.matches(".hit") && event.preventDefault();
    element.addEventListener("touchstart", keep, { passive: false });
    element.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      event.preventDefault();
      element.focus({ preventScroll: true });
      element.setPointerCapture(event.pointerId);
      const before = this.setting, follow = grab(event), gesture = new AbortController();
      this.held = true;
      const end = ({ type }) => {
        gesture.abort();
        this.held = false;
        // The browser took the finger after all, to scroll: then nothing was meant.
        if (type === "pointercancel") this.change(before);
        else this.draw(this.setting);
      };
      element.addEventListener("pointermove", follow, gesture);
      element.addEventListener("pointerup", end, gesture);
      element.addEventListener("pointercancel", end, gesture);
    });
  }

  // Where the pointer is, in the units of the drawing.
  static at(svg, event) {
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
  }
}
