// The rotary dial: a query at position m and a key at position n, turned pair by pair. The mathematics is in the
// static functions on top, which the tests compare with posbook; the rest draws it. A head is a list of pairs
// [a, b], angles run anticlockwise, and the offset is key − query, as everywhere in the book.

class RotaryDial extends MovingFigure {
  static PAIRS = 32;
  static LAST = 8191; // the last position that can be set
  static TRAINED = 4096; // tokens that the imagined model was trained on
  static SCALES = [64, 512, RotaryDial.LAST]; // how far sliders and the curve reach

  static word = "dial";
  static fields = {
    view: { start: "one", among: ["one", "all"] },
    m: { start: 9, from: 0, to: RotaryDial.LAST },
    n: { start: 5, from: 0, to: RotaryDial.LAST },
    pair: { start: 5, from: 0, to: RotaryDial.PAIRS - 1 },
    vectors: { start: "ones", among: ["ones", "random", "peaked"] },
    peak: { start: -24, from: -512, to: 512 },
    seed: { start: 1, from: 1, to: 9999 },
  };

  // --- mathematics ------------------------------------------------------------------------------------------

  // Radians a token, the fastest pair first.
  static frequencies(dim, base = 10000) {
    return Array.from({ length: dim / 2 }, (_, i) => base ** ((-2 * i) / dim));
  }

  static turn([a, b], angle) {
    const cos = Math.cos(angle), sin = Math.sin(angle);
    return [a * cos - b * sin, a * sin + b * cos];
  }

  static rotate(x, position, theta) {
    return x.map((pair, i) => RotaryDial.turn(pair, position * theta[i]));
  }

  // What each pair gives to the product of two vectors.
  static parts(q, k) {
    return q.map(([a, b], i) => a * k[i][0] + b * k[i][1]);
  }

  static dot(q, k) {
    return RotaryDial.parts(q, k).reduce((sum, part) => sum + part, 0);
  }

  static score(q, k, m, n, theta) {
    return RotaryDial.dot(RotaryDial.rotate(q, m, theta), RotaryDial.rotate(k, n, theta));
  }

  // The angle from the query's hand to the key's, between −π and π.
  static wedge([a, b], [c, d]) {
    return Math.atan2(a * d - b * c, a * c + b * d);
  }

  // The scores at the offsets −half … half. Each pair is turned on from one offset to the next, which over so
  // few steps errs by rounding only, and spares a million cosines.
  static curve(q, k, theta, half) {
    const scores = new Float64Array(2 * half + 1);
    q.forEach(([a, b], i) => {
      const even = a * k[i][0] + b * k[i][1], odd = b * k[i][0] - a * k[i][1];
      let cos = 1, sin = 0;
      const stepCos = Math.cos(theta[i]), stepSin = Math.sin(theta[i]);
      for (let offset = 0; offset <= half; offset++) {
        scores[half + offset] += even * cos + odd * sin;
        if (offset) scores[half - offset] += even * cos - odd * sin;
        [cos, sin] = [cos * stepCos - sin * stepSin, sin * stepCos + cos * stepSin];
      }
    });
    return scores;
  }

  // Whether no offset within `length` tokens turned this pair as far: keys of the past only, as a decoder has.
  static unseen(offset, frequency, length) {
    const seen = (length - 1) * frequency;
    if (Math.abs(offset) < length || length * frequency >= 2 * Math.PI) return false;
    return (((-offset * frequency) % (2 * Math.PI)) + 2 * Math.PI) % (2 * Math.PI) > seen;
  }

  // Normal numbers, always the same for a seed: mulberry32, then Box and Muller.
  static normals(seed, count) {
    let state = seed;
    const uniform = () => {
      state = (state + 0x6d2b79f5) | 0;
      let t = Math.imul(state ^ (state >>> 15), 1 | state);
      t ^= t + Math.imul(t ^ (t >>> 7), 61 | t);
      return (((t ^ (t >>> 14)) >>> 0) + 0.5) / 2 ** 32;
    };
    return Array.from({ length: count }, () =>
      Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform()));
  }

  // The query and the key of a setting, each of length 1. A key that is the query turned back by r tokens is
  // met head-on at the offset r.
  static vectors({ vectors, seed, peak }, theta) {
    const head = (numbers) => {
      const length = Math.hypot(...numbers);
      return theta.map((_, i) => [numbers[2 * i] / length, numbers[2 * i + 1] / length]);
    };
    const dim = 2 * theta.length;
    if (vectors === "ones") return [head(Array(dim).fill(1)), head(Array(dim).fill(1))];
    const numbers = RotaryDial.normals(seed, 2 * dim);
    const q = head(numbers.slice(0, dim));
    return [q, vectors === "peaked" ? RotaryDial.rotate(q, -peak, theta) : head(numbers.slice(dim))];
  }

  static wrapped(angle) {
    return angle - 2 * Math.PI * Math.round(angle / (2 * Math.PI));
  }

  // --- words ------------------------------------------------------------------------------------------------

  static number(value, digits = 0) {
    // Rounded first, so that −0.0001 is not written as −0.000.
    const rounded = Number(value.toFixed(digits)) + 0;
    const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
    return rounded.toLocaleString("en", options).replace("-", "−");
  }

  static degrees(angle, digits = 1) {
    return `${RotaryDial.number((angle * 180) / Math.PI, digits)}°`;
  }

  static turned(angle) {
    const turns = angle / (2 * Math.PI);
    if (turns < 2) return RotaryDial.degrees(angle, turns < 0.1 ? 1 : 0);
    return `${RotaryDial.number(turns, turns < 10 ? 1 : 0)} turns`;
  }

  static signed(count) {
    return (count > 0 ? "+" : "") + RotaryDial.number(count);
  }

  static whereabouts(offset) {
    if (!offset) return "same place";
    const far = Math.abs(offset), tokens = far === 1 ? " token" : far < 1000 ? " tokens" : "";
    return `${RotaryDial.number(far)}${tokens} ${offset < 0 ? "back" : "ahead"}`;
  }

  // A point as SVG has it, whose y grows downwards.
  static polar(radius, angle) {
    return `${(radius * Math.cos(angle)).toFixed(2)} ${(-radius * Math.sin(angle)).toFixed(2)}`;
  }

  // --- the page ---------------------------------------------------------------------------------------------

  html() {
    const row = (name, label, more) => `
      <div class="row ${label}">
        <label for="dial-${name}">${label} <i>${name}</i></label>
        <input id="dial-${name}" type="number" name="${name}" min="0" max="${RotaryDial.LAST}" inputmode="numeric">
        <input type="range" name="${name}" min="0" aria-label="position of the ${label}">
        <output data-is="${name}-turned"></output>
      </div>`;
    const handle = (name, role, label, inside) => `
      <g class="${role}" role="slider" tabindex="0" data-is="${name}" aria-label="${label}" aria-valuemin="0">
        ${inside}
      </g>`; // 23.3 units are more than 22 px on a screen of 360
    const knob = (name, letter) => `
      <g data-is="${name}-knob">
        <circle class="knob" r="13"/><text class="letter">${letter}</text><circle class="hit" r="23.3"/>
      </g>`;
    const tile = (name, title) => `
      <p data-is="${name}-tile"><span data-is="${name}-name">${title}</span>
        <b data-is="${name}-is"></b><small data-is="${name}-says"></small></p>`;
    const small = Array.from({ length: RotaryDial.PAIRS }, (_, i) => {
      const x = 21.5 + 43 * (i % 8), y = 34 + 45 * Math.floor(i / 8);
      return `
        <g class="small pick" data-pair="${i}" transform="translate(${x} ${y})">
          <rect class="hit" x="-21" y="-18" width="42" height="44"/>
          <circle class="face" r="16"/><path class="wedge"/><path class="key hand"/><path class="query hand"/>
          <path class="grid" d="M-16 22.5H16"/><path class="axis" d="M0 20V25"/><path class="bar"/>
        </g>`;
    }).join("");
    return `
      <div class="buttons wide" role="group" aria-label="What is shown">
        <button type="button" data-view="one">One pair</button>
        <button type="button" data-view="all">All pairs</button>
      </div>
      <div class="stage">
        <svg data-is="one" viewBox="0 0 344 384" role="group" aria-label="One pair as a dial">
          <g transform="translate(172 172)">
            <circle class="face" r="156"/><path class="ticks" data-is="ticks"/>
            <path class="zero" data-is="zero"/><text class="middle" data-is="zero-label" dy=".35em">0</text>
            <g class="key"><path class="hand" data-is="key-hand"/></g>
            <g class="query"><path class="hand" data-is="query-hand"/></g>
            ${handle("both", "both", "query and key together", `
              <path class="wedge" data-is="wedge"/><path class="arc" data-is="arc"/><path class="tip" data-is="tip"/>
              <g data-is="both-knob"><circle class="knob" r="11"/><path class="sign"
                d="M-6 0H6M-3 -3L-6 0L-3 3M3 -3L6 0L3 3"/><circle class="hit" r="23.3"/></g>`)}
            <circle class="hub" r="6"/>
            <text class="amount" data-is="amount" dy=".35em"></text>
            ${handle("key", "key", "key", knob("key", "k"))}
            ${handle("query", "query", "query", knob("query", "q"))}
          </g>
          <g transform="translate(172 354)" aria-hidden="true">
            <path class="grid" d="M-140 0H140" stroke-width="9"/><path class="gauge" data-is="gauge"/>
            <path class="axis" d="M-140 -8V8M0 -8V8M140 -8V8"/>
            <text class="middle" x="-140" y="24">−1</text><text class="middle" y="24">score of the pair</text>
            <text class="middle" x="140" y="24">1</text>
          </g>
        </svg>
        <svg data-is="all" viewBox="0 0 344 384" role="group"
          aria-label="All pairs as small dials, and below them their score at every offset">
          <g aria-hidden="true">
            <text x="2" y="11">pair 0, the fastest</text>
            <text class="end" x="342" y="11">the slowest is pair ${RotaryDial.PAIRS - 1}</text>
            ${small}
          </g>
          <g transform="translate(0 212)" aria-hidden="true">
            <path class="grid" d="M24 0H336M24 140H336M180 0V140"/><path class="axis" d="M24 70H336"/>
            <text class="end" x="18" y="4">1</text><text class="end" x="18" y="74">0</text>
            <text class="end" x="18" y="144">−1</text>
            <text class="past" x="28" y="134">past</text><text class="future end" x="332" y="134">future</text>
            <path class="curve" data-is="curve"/>
            <text x="24" y="156" data-is="first"></text><text class="middle" x="180" y="156">0</text>
            <text class="end" x="336" y="156" data-is="last"></text>
            <text class="middle" x="180" y="171">offset, key − query (tokens)</text>
          </g>
          <g transform="translate(0 212)">
            ${handle("offset", "both", "offset", `
              <rect class="swipe" x="24" y="-8" width="312" height="156"/>
              <path class="cursor" data-is="cursor" d="M0 0V140"/>
              <g data-is="offset-knob"><circle class="knob" r="7"/><circle class="hit" r="23.3"/></g>`)}
          </g>
        </svg>
      </div>
      <div class="panel">
        ${row("m", "query")}${row("n", "key")}
        <div class="row both">
          <span class="name">both</span>
          <button type="button" data-is="play" aria-pressed="false" aria-label="let both move on">▶</button>
          <input type="range" data-is="together" min="0" aria-label="query and key together">
          <output></output>
        </div>
        <div class="row" data-for="one">
          <label for="dial-pair">pair <i>i</i></label>
          <input id="dial-pair" type="number" name="pair" min="0" max="${RotaryDial.PAIRS - 1}" inputmode="numeric">
          <input type="range" name="pair" min="0" max="${RotaryDial.PAIRS - 1}" aria-label="pair">
          <output data-is="step"></output>
          <p class="note" data-is="speed"></p>
        </div>
        <fieldset data-for="all">
          <legend>query and key</legend>
          <div class="buttons">
            <label class="choice"><input type="radio" name="vectors" value="ones">all ones</label>
            <label class="choice"><input type="radio" name="vectors" value="random">random</label>
            <label class="choice"><input type="radio" name="vectors" value="peaked">turned to peak at</label>
            <input type="number" name="peak" min="-512" max="512" style="width: 4.6rem"
              aria-label="offset of the peak">
            <span data-is="seed"></span><button type="button" data-do="another">another</button>
          </div>
        </fieldset>
        <div class="tiles">
          ${tile("offset", "offset <i>n</i> − <i>m</i>")}${tile("wedge", "")}${tile("score", "score")}
        </div>
        <p class="says" data-is="says"></p>
      </div>
      <div class="buttons wide">
        <button type="button" data-do="neighbour">neighbour</button>
        <button type="button" data-do="far">same word, far away</button>
        <button type="button" data-do="past">past the trained length</button>
        <button type="button" data-do="reset">reset</button>
      </div>`;
  }

  begin() {
    this.theta = RotaryDial.frequencies(2 * RotaryDial.PAIRS);
    this.scale = RotaryDial.SCALES[0];
    this.parts = {}; // by name, since they are asked for at every step
    for (const element of this.figure.querySelectorAll("[data-is]")) this.parts[element.dataset.is] = element;
    this.dials = [...this.figure.querySelectorAll("[data-pair]")];

    for (const button of this.figure.querySelectorAll("[data-view]"))
      button.addEventListener("click", () => this.change({ view: button.dataset.view }));
    for (const button of this.figure.querySelectorAll("[data-do]"))
      button.addEventListener("click", () => this[button.dataset.do]());
    for (const dial of this.dials)
      dial.addEventListener("click", () => this.change({ pair: dial.dataset.pair }));
    this.parts.play.addEventListener("click", () => this.play());
    this.parts.together.addEventListener("input", ({ target }) =>
      this.shift(target.value - Math.min(this.setting.m, this.setting.n)));

    const to = (value, by) => (by === Infinity ? this.scale : value + by);
    this.handle(this.parts.query, (by) => this.change({ m: to(this.setting.m, by) }), this.dragging(["m"]));
    this.handle(this.parts.key, (by) => this.change({ n: to(this.setting.n, by) }), this.dragging(["n"]));
    this.handle(this.parts.both,
      (by) => this.shift(by === Infinity ? this.scale - Math.max(this.setting.m, this.setting.n) : by),
      this.dragging(["m", "n"]));
    this.handle(this.parts.offset,
      (by) => this.setOffset(Math.max(-this.reach, Math.min(this.reach, this.setting.n - this.setting.m + by))),
      (event) => {
        const reach = this.reach; // the axis stays as it is while it is held
        const follow = (event) => {
          const [x] = MovingFigure.at(this.parts.all, event);
          this.setOffset(Math.round(Math.max(-1, Math.min(1, (x - 180) / 156)) * reach));
        };
        // A finger that comes down may be about to scroll the page.
        if (event.pointerType === "mouse") follow(event);
        return follow;
      });
  }

  // A hand is dragged around the middle, past a whole turn where the pointer goes on; what is dragged snaps to
  // whole positions.
  dragging(names) {
    return (event) => {
      const angle = (event) => {
        const [x, y] = MovingFigure.at(this.parts.one, event);
        return Math.atan2(172 - y, x - 172);
      };
      const start = { ...this.setting }, speed = this.theta[start.pair];
      const held = names.map((name) => start[name]);
      const least = -Math.min(...held), most = RotaryDial.LAST - Math.max(...held);
      let last = angle(event), moved = 0;
      this.kind = ""; // what moved is counted from here
      return (event) => {
        const now = angle(event);
        moved = Math.max(least, Math.min(most, moved + RotaryDial.wrapped(now - last) / speed));
        last = now;
        this.change(Object.fromEntries(names.map((name) => [name, start[name] + Math.round(moved)])));
      };
    };
  }

  shift(by) {
    const { m, n } = this.setting;
    const whole = Math.max(-Math.min(m, n), Math.min(RotaryDial.LAST - Math.max(m, n), by));
    this.change({ m: m + whole, n: n + whole });
  }

  // The query stays where it is, unless the key would fall off either end.
  setOffset(offset) {
    const m = Math.max(-offset, Math.min(RotaryDial.LAST - offset, this.setting.m), 0);
    this.change({ m, n: m + offset });
  }

  play() {
    const going = !this.timer;
    if (going) this.timer = setInterval(() => this.isConnected && !document.hidden && this.shift(1), 220);
    else this.timer = clearInterval(this.timer);
    this.parts.play.setAttribute("aria-pressed", going);
    this.parts.play.textContent = going ? "❚❚" : "▶";
  }

  neighbour() {
    this.change({ m: 9, n: 8 });
    const [fast, here] = [0, this.setting.pair].map((i) => RotaryDial.degrees(this.theta[i]));
    this.say(`One token back: pair 0 opens by ${fast}, pair ${this.setting.pair} by ${here}.`, true);
  }

  far() {
    this.change({ m: 1009, n: 9, vectors: "ones" });
    const turns = RotaryDial.number((1000 * this.theta[0]) / (2 * Math.PI));
    this.say(`The same word, 1,000 tokens back: pair 0 has been round ${turns} times and may stand anywhere; ` +
      "the slowest pairs have hardly opened.", true);
  }

  past() {
    this.change({ m: 5009, n: 9, pair: Math.max(this.setting.pair, 24) });
    const count = this.theta.filter((speed) => RotaryDial.unseen(-5000, speed, RotaryDial.TRAINED)).length;
    this.say(`5,000 tokens back, trained on ${RotaryDial.number(RotaryDial.TRAINED)}: ${count} of ` +
      `${RotaryDial.PAIRS} pairs open as far as no training text ever opened them` + (this.setting.view === "one"
        ? `, pair ${this.setting.pair} by ${RotaryDial.degrees(-5000 * this.theta[this.setting.pair])} in all.` : "."), true);
  }

  another() {
    this.change({ seed: (this.setting.seed % 9999) + 1 });
  }

  reset() {
    if (this.timer) this.play();
    this.kind = "";
    this.change(this.constructor.allowed({}));
    this.say("All as it was at the start.", true);
  }

  // --- drawing ----------------------------------------------------------------------------------------------

  draw(before) {
    const { view, m, n, pair } = this.setting, parts = this.parts;
    this.rescale();
    this.fill();
    this.load();
    const q = RotaryDial.rotate(this.q, m, this.theta), k = RotaryDial.rotate(this.k, n, this.theta);
    const offset = n - m, wedge = RotaryDial.wedge(q[pair], k[pair]);
    const score = view === "one" ? Math.cos(wedge) : RotaryDial.dot(q, k);
    const fresh = this.theta.map((speed) => RotaryDial.unseen(offset, speed, RotaryDial.TRAINED));

    for (const button of this.figure.querySelectorAll("[data-view]"))
      button.setAttribute("aria-pressed", button.dataset.view === view);
    for (const name of ["one", "all"]) parts[name].toggleAttribute("hidden", name !== view);
    for (const element of this.figure.querySelectorAll("[data-for]")) element.hidden = element.dataset.for !== view;
    if (view === "one") this.drawOne(q[pair], k[pair], wedge);
    else this.drawAll(q, k, fresh, offset, score);

    const speed = this.theta[pair], round = (2 * Math.PI) / speed, { number, degrees } = RotaryDial;
    parts["m-turned"].textContent = RotaryDial.turned(m * speed);
    parts["n-turned"].textContent = RotaryDial.turned(n * speed);
    parts.step.textContent = `θ = ${Number(speed.toPrecision(3))}`;
    parts.speed.textContent = `${degrees(speed, speed < 0.02 ? 3 : 1)} a token, ` +
      `once round in ${number(round, round < 100 ? 1 : 0)} tokens`;

    const count = fresh.filter(Boolean).length;
    parts["offset-is"].textContent = number(offset);
    parts["offset-says"].textContent = RotaryDial.whereabouts(offset);
    parts["wedge-name"].textContent = view === "one" ? "wedge" : "new wedges";
    parts["wedge-is"].textContent = view === "one" ? degrees(wedge) : `${count} of ${RotaryDial.PAIRS}`;
    parts["score-is"].textContent = number(score, 3);
    this.tell(before, view === "one" ? fresh[pair] : count > 0);
    this.describe(offset, wedge, score);
  }

  // How far the sliders reach; not less while one is held.
  rescale() {
    const { m, n } = this.setting;
    const needed = RotaryDial.SCALES.find((scale) => scale >= Math.max(m, n));
    this.scale = this.held ? Math.max(needed, this.scale) : needed;
    for (const range of this.figure.querySelectorAll('[type="range"]:not([name="pair"])')) range.max = this.scale;
    this.parts.together.max = this.scale - Math.abs(n - m);
    this.parts.together.value = Math.min(m, n);
  }

  // Query and key, where another choice was made.
  load() {
    const { vectors, seed, peak } = this.setting, wanted = [vectors, seed, peak].join();
    if (wanted === this.drawn) return;
    this.drawn = wanted;
    [this.q, this.k] = RotaryDial.vectors(this.setting, this.theta);
    this.parts.seed.textContent = vectors === "ones" ? "" : `seed ${seed}`;
    this.figure.querySelector('[data-do="another"]').hidden = vectors === "ones";
  }

  // For screen readers, in words; a minus sign is not read out by all.
  describe(offset, wedge, score) {
    const { m, n } = this.setting, { number } = RotaryDial, where = RotaryDial.whereabouts(offset);
    const read = `wedge ${RotaryDial.degrees(wedge)}; score ${number(score, 2)}`;
    const handles = {
      query: [0, m, this.scale, `query at ${m}; ${where}; ${read}`],
      key: [0, n, this.scale, `key at ${n}; ${where}; ${read}`],
      both: [0, Math.min(m, n), this.scale, `query at ${m}, key at ${n}; ${read}`],
      offset: [-(this.reach ?? 64), offset, this.reach ?? 64, `offset ${number(offset)}; score ${number(score, 2)}`],
    };
    const sliders = { m: handles.query[3], n: handles.key[3], both: handles.both[3] };
    for (const [name, [least, now, most, words]] of Object.entries(handles)) {
      const values = { valuemin: least, valuenow: now, valuemax: most, valuetext: words.replaceAll("−", "minus ") };
      for (const [key, value] of Object.entries(values)) this.parts[name].setAttribute(`aria-${key}`, value);
    }
    for (const range of this.figure.querySelectorAll('[type="range"]')) {
      const words = sliders[range.name || "both"];
      if (words) range.setAttribute("aria-valuetext", words.replaceAll("−", "minus "));
    }
  }

  // What moved since the reader took hold of it, and what did not.
  tell(before, isNew) {
    const { m, n, view, pair, vectors, peak } = this.setting, { signed } = RotaryDial;
    const moved = before && { m: m - before.m, n: n - before.n };
    if (moved && (moved.m || moved.n)) {
      const kind = moved.m === moved.n ? "both" : !moved.n ? "query" : !moved.m ? "key" : "";
      if (kind !== this.kind) [this.kind, this.since] = [kind, before];
    } else if (before && ["view", "pair", "vectors", "peak", "seed"].some((name) => before[name] !== this.setting[name]))
      this.kind = "";
    const stays = this.kind === "both";
    for (const tile of ["wedge", "score"]) this.parts[`${tile}-tile`].classList.toggle("still", stays);
    this.parts["wedge-tile"].classList.toggle("new", isNew && !stays);
    this.parts["wedge-says"].textContent = stays ? "stands still" : isNew ? "never trained"
      : view === "one" ? "from q to k" : `trained on ${RotaryDial.TRAINED}`;
    this.parts["score-says"].textContent = stays ? "stands still"
      : view === "one" ? "its cosine" : "at most 1";

    if (!before || view !== before.view)
      this.say({
        one: "Drag a hand. The grip in the wedge moves both.",
        all: "Each dial is a pair, the bar below it what it gives to the score. Drag the dot along the offsets.",
      }[view], before);
    else if (stays)
      this.say(`Both moved by ${signed(m - this.since.m)}, to ${m} and ${n}. The wedge and the score stand still.`);
    else if (this.kind === "query")
      this.say(`The query moved by ${signed(m - this.since.m)}, and with it the wedge and the score.`);
    else if (this.kind === "key")
      this.say(`The key moved by ${signed(n - this.since.n)}, and with it the wedge and the score.`);
    else if (before.pair !== pair && view === "one")
      this.say(`At the same offset, pair ${pair} opens by its own speed.`);
    else if (before.vectors !== vectors || before.peak !== peak || before.seed !== this.setting.seed)
      this.say({
        ones: "All ones: the score is the mean of the cosines of all wedges.",
        random: "Random query and key: where the score peaks is chance.",
        peaked: `The key is the query, turned so that all wedges close at the offset ${RotaryDial.number(peak)}.`,
      }[vectors], true);
  }

  drawOne(q, k, wedge) {
    const speed = this.theta[this.setting.pair], [a, b] = this.q[this.setting.pair];
    // As many ticks as can be told apart: one for each token, or for each 10, 100, 1000.
    const zero = Math.atan2(b, a), full = (2 * Math.PI) / speed;
    const unit = [1, 10, 100, 1000].find((unit) => full / unit <= 72) ?? 1000;
    const at = RotaryDial.polar;
    let ticks = "";
    for (let token = unit; token < full; token += unit)
      ticks += `M${at(149, zero + token * speed)}L${at(156, zero + token * speed)}`;
    this.parts.ticks.setAttribute("d", ticks);
    this.parts.zero.setAttribute("d", `M${at(145, zero)}L${at(156, zero)}`);
    this.parts["zero-label"].setAttribute("transform", `translate(${at(165, zero)})`);
    this.parts.amount.textContent = RotaryDial.degrees(wedge);

    this.goal = [Math.atan2(q[1], q[0]), Math.atan2(k[1], k[0])];
    if (this.motionless.matches || !this.shown) this.place(...this.goal);
    else this.frame ??= requestAnimationFrame(() => this.run());
  }

  // The hands run after the setting for a few frames.
  run() {
    const gaps = this.goal.map((angle, i) => RotaryDial.wrapped(angle - this.shown[i]));
    const near = gaps.every((gap) => Math.abs(gap) < 0.003);
    this.place(...(near ? this.goal : this.shown.map((angle, i) => angle + 0.3 * gaps[i])));
    this.frame = near ? null : requestAnimationFrame(() => this.run());
  }

  place(query, key) {
    const parts = this.parts, at = RotaryDial.polar;
    const wedge = RotaryDial.wrapped(key - query), middle = query + wedge / 2;
    const sweep = wedge > 0 ? 0 : 1;
    this.shown = [query, key];
    parts["query-hand"].setAttribute("d", `M0 0L${at(134, query)}`);
    parts["key-hand"].setAttribute("d", `M0 0L${at(88, key)}`);
    parts["query-knob"].setAttribute("transform", `translate(${at(134, query)})`);
    parts["key-knob"].setAttribute("transform", `translate(${at(88, key)})`);
    parts["both-knob"].setAttribute("transform",
      `translate(${at(42, middle)}) rotate(${90 - (middle * 180) / Math.PI})`);
    parts.wedge.setAttribute("d", `M0 0L${at(66, query)}A66 66 0 0 ${sweep} ${at(66, key)}Z`);
    parts.arc.setAttribute("d", `M${at(66, query)}A66 66 0 0 ${sweep} ${at(66, key)}`);
    // The arrow's head, where there is room for one.
    const back = key - Math.sign(wedge) * 0.17;
    const head = Math.abs(wedge) > 0.4 ? `M${at(66, key)}L${at(60, back)}L${at(72, back)}Z` : "";
    parts.tip.setAttribute("d", head);
    parts.amount.setAttribute("transform", `translate(${at(62, middle + Math.PI)})`);
    parts.gauge.setAttribute("d", `M0 0H${(140 * Math.cos(wedge)).toFixed(2)}`);
  }

  drawAll(q, k, fresh, offset, score) {
    const products = RotaryDial.parts(q, k);
    const largest = Math.max(...this.q.map((pair, i) => Math.hypot(...pair) * Math.hypot(...this.k[i])));
    const at = RotaryDial.polar;
    this.dials.forEach((dial, i) => {
      const query = Math.atan2(q[i][1], q[i][0]), key = Math.atan2(k[i][1], k[i][0]);
      const [, , wedge, keyHand, queryHand, , , bar] = dial.children;
      const sweep = RotaryDial.wrapped(key - query) > 0 ? 0 : 1;
      wedge.setAttribute("d", `M0 0L${at(12, query)}A12 12 0 0 ${sweep} ${at(12, key)}Z`);
      keyHand.setAttribute("d", `M0 0L${at(10, key)}`);
      queryHand.setAttribute("d", `M0 0L${at(15, query)}`);
      bar.setAttribute("d", `M0 22.5H${((16 * products[i]) / largest).toFixed(1)}`);
      dial.classList.toggle("new", fresh[i]);
      dial.classList.toggle("chosen", i === this.setting.pair);
    });

    const needed = Math.max(Math.abs(offset), this.setting.vectors === "peaked" ? Math.abs(this.setting.peak) : 0);
    const reach = RotaryDial.SCALES.find((scale) => scale >= needed);
    this.reach = this.held ? Math.max(reach, this.reach ?? 0) : reach;
    if (this.drawnCurve !== `${this.drawn},${this.reach}`) {
      this.drawnCurve = `${this.drawn},${this.reach}`;
      this.drawCurve(RotaryDial.curve(this.q, this.k, this.theta, this.reach));
    }
    const x = 180 + (156 * offset) / this.reach;
    this.parts.cursor.setAttribute("transform", `translate(${x.toFixed(1)} 0)`);
    this.parts["offset-knob"].setAttribute("transform", `translate(${x.toFixed(1)} ${(70 - 70 * score).toFixed(1)})`);
  }

  // Where more offsets than dots share a place, the line runs from the lowest to the highest among them.
  drawCurve(scores) {
    const y = (score) => (70 - 70 * score).toFixed(1), columns = 624;
    let path = "";
    if (scores.length <= 2 * columns) {
      const step = 312 / (scores.length - 1);
      scores.forEach((score, i) => (path += `${i ? "L" : "M"}${(24 + step * i).toFixed(1)} ${y(score)}`));
    } else {
      for (let column = 0; column < columns; column++) {
        const [from, to] = [column, column + 1].map((edge) => Math.floor((edge * scores.length) / columns));
        const some = scores.subarray(from, Math.min(to + 1, scores.length));
        path += `M${24 + column / 2} ${y(Math.min(...some))}V${y(Math.max(...some))}`;
      }
    }
    this.parts.curve.setAttribute("d", path);
    this.parts.first.textContent = RotaryDial.number(-this.reach);
    this.parts.last.textContent = RotaryDial.number(this.reach);
  }
}

customElements.define("rotary-dial", RotaryDial);
