// The length explorer: how far every pair of a model turns within the length it was trained on, and where a longer
// text takes it, by itself or slowed by one of the methods. The mathematics is in the static functions on top, which
// the tests compare with posbook. What released models look like comes from their configurations, through the gallery
// script: see `given`.

class LengthExplorer extends MovingFigure {
  static METHODS = {
    none: "none",
    linear: "interpolation",
    ntk: "NTK-aware",
    dynamic: "dynamic NTK",
    yarn: "YaRN",
    llama3: "Llama 3",
    longrope: "LongRoPE",
  };
  static models = {};
  // How a pair is drawn, by its fate, and where its word stands in the key.
  static MARKS = {
    round: ["m0 -4v8", "came round", 6],
    inside: ["m-3 0l3 -3l3 3l-3 3z", "stays inside", 106],
    beyond: ["m-3 3l3 -6l3 6z", "goes wider", 206],
  };

  static word = "explorer";
  static fields = {
    model: { start: "", among: [""] },
    base: { start: 10000, from: 2, to: 1e8 },
    dim: { start: 128, from: 4, to: 512 },
    trained: { start: 4096, from: 16, to: 2 ** 22 },
    wanted: { start: 32768, from: 16, to: 2 ** 24 },
    method: { start: "none", among: Object.keys(LengthExplorer.METHODS) },
    pair: { start: 46, from: 0, to: 255 },
  };

  // --- mathematics ------------------------------------------------------------------------------------------

  // Radians a token, the fastest pair first.
  static frequencies(dim, base) {
    return Array.from({ length: dim / 2 }, (_, i) => base ** ((-2 * i) / dim));
  }

  static turns(theta, length) {
    return theta.map((speed) => (length * speed) / (2 * Math.PI));
  }

  // What a method is called with: what the model's own file says of its own method, else the usual values and the
  // wanted over the trained length.
  static recipe({ trained, wanted, method }, model) {
    const own = method !== "none" && model?.method === method;
    const usual = { beta_fast: 32, beta_slow: 1, truncate: true, low: 1, high: 4 };
    const factor = method === "none" ? 1 : Math.max(wanted / trained, 1);
    const recipe = { ...usual, factor, ...(own && model), trained, wanted, method, own };
    const yarn = method === "yarn" ? (0.1 * Math.log(recipe.factor) + 1) ** 2 : 1;
    return { ...recipe, scores: own ? model.scores : yarn };
  }

  // The frequencies after scaling; null where the method cannot be used.
  static scaled(theta, recipe) {
    const { method, factor, trained, wanted } = recipe, last = theta.length - 1;
    const ntk = (factor) => theta.map((speed, i) => speed / factor ** (i / last));
    const mixed = (kept) => theta.map((speed, i) => {
      const share = Math.max(0, Math.min(1, kept(i)));
      return share * speed + ((1 - share) * speed) / factor;
    });
    if (method === "linear") return theta.map((speed) => speed / factor);
    if (method === "ntk") return ntk(factor);
    if (method === "dynamic") return ntk(1 + (factor * (Math.max(wanted, trained) - trained)) / trained);
    if (method === "llama3") {
      const turns = LengthExplorer.turns(theta, trained);
      return mixed((i) => (turns[i] - recipe.low) / (recipe.high - recipe.low));
    }
    if (method === "yarn") {
      // Pairs a and b would make just beta_fast and beta_slow turns.
      const step = Math.log(theta[0] / theta[last]) / last, [first] = LengthExplorer.turns(theta, trained);
      let [a, b] = [recipe.beta_fast, recipe.beta_slow].map((beta) => Math.log(first / beta) / step);
      if (recipe.truncate) [a, b] = [Math.floor(a), Math.ceil(b)];
      [a, b] = [Math.max(a, 0), Math.min(b, 2 * theta.length - 1)];
      if (a > b) return null;
      if (a === b) b += 0.001;
      return mixed((i) => (b - i) / (b - a));
    }
    if (method === "longrope") {
      const factors = wanted > trained ? recipe.long_factor : recipe.short_factor;
      return factors ? theta.map((speed, i) => speed / factors[i]) : null;
    }
    return theta;
  }

  // What becomes of every pair. Inside: never round, and no wider than in training; beyond: wider.
  static fates(setting, model) {
    const theta = LengthExplorer.frequencies(setting.dim, setting.base);
    const recipe = LengthExplorer.recipe(setting, model), slowed = LengthExplorer.scaled(theta, recipe);
    const trained = LengthExplorer.turns(theta, setting.trained);
    const wanted = LengthExplorer.turns(slowed ?? theta, setting.wanted);
    const pairs = theta.map((speed, i) => {
      const wider = wanted[i] / trained[i];
      // What rounding adds is no new angle.
      const fate = trained[i] >= 1 ? "round" : wider > 1 + 1e-9 ? "beyond" : "inside";
      return { speed, trained: trained[i], wanted: wanted[i], wider, fate, slower: slowed ? speed / slowed[i] : 1 };
    });
    const of = (fate) => pairs.filter((pair) => pair.fate === fate);
    const beyond = of("beyond"), round = of("round");
    const widest = beyond.length ? beyond.reduce((most, pair) => (pair.wider > most.wider ? pair : most)) : null;
    const alike = widest && beyond.every((pair) => pair.wider > widest.wider * (1 - 1e-9));
    return {
      pairs, recipe, possible: slowed !== null, round: round.length, never: pairs.length - round.length,
      beyond: beyond.length, widest: widest && pairs.indexOf(widest), alike,
      slower: round.filter((pair) => pair.slower > 1 + 1e-9).length,
      slowest: Math.max(1, ...round.map((pair) => pair.slower)),
    };
  }

  // A whole setting, also after one of its values was changed by hand: then it is no longer the model's.
  static allowed(setting) {
    const kept = super.allowed(setting), model = this.models[kept.model];
    kept.dim -= kept.dim % 2;
    kept.pair = Math.min(kept.pair, kept.dim / 2 - 1);
    if (model && ["base", "dim", "trained"].some((name) => kept[name] !== model[name])) kept.model = "";
    return kept;
  }

  // --- words ------------------------------------------------------------------------------------------------

  static number(value, digits = 0) {
    return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  }

  // Three figures where it is small, whole where it is large or whole.
  static about(value) {
    const whole = Math.abs(value - Math.round(value)) < 1e-9;
    const digits = whole || value >= 99.95 ? 0 : value >= 9.995 ? 1 : value >= 0.9995 ? 2 : 4;
    return LengthExplorer.number(value, digits);
  }

  // An angle from 0 up, in degrees up to two turns.
  static angle(turns) {
    const degrees = 360 * turns;
    if (turns >= 2) return `${LengthExplorer.about(turns)} turns`;
    return `${LengthExplorer.number(degrees, degrees < 9.95 ? 1 : 0)}°`;
  }

  static words(setting, { pairs, recipe, possible, round, never, beyond, widest, alike, slower, slowest }) {
    const { number, about } = LengthExplorer, { trained, wanted, method } = setting, said = [];
    if (!possible)
      said.push(method === "longrope"
        ? "LongRoPE’s factors are searched for, one for each pair of one model; here there are none."
        : "YaRN’s ramp would run backwards here: every pair turns too often, or none often enough.");
    const by = about(method === "dynamic" ? pairs.at(-1).slower : recipe.factor);
    const means = method === "longrope" ? ", by the factors of its file,"
      : recipe.own ? ` by ${by}, as its file has it,` : recipe.factor > 1 ? ` by ${by},` : ",";
    const how = method === "none" || !possible ? "Unscaled," : `With ${LengthExplorer.METHODS[method]}${means}`;
    const late = never === 1 ? "the pair that never came round" : `the ${number(never)} pairs that never came round`;
    if (beyond) {
      const who = beyond === 1 ? `pair ${widest}` : alike ? "all alike" : `pair ${widest} most`;
      const count = never === 1 ? "" : beyond === never ? "all of " : `${number(beyond)} of `;
      said.push(`What breaks: the slow pairs. ${how} ${count}${late} ${beyond === 1 ? "goes" : "go"} wider than any ` +
        `text of ${number(trained)} tokens turned them, ${who}: ${about(pairs[widest].wider)} times.`);
    } else if (!never) said.push("Every pair came round in training: no angle of a single pair is new.");
    else said.push(`${how} ${never === 1 ? `${late} goes no` : `none of ${late} goes`} wider than in training.`);
    if (slower) {
      const which = pairs[0].slower > 1 + 1e-9 ? "the fast pairs" : "the pairs in between";
      said.push(`${beyond ? "" : `What suffers: ${which}. `}${slower === round ? "All" : number(slower)} of the ` +
        `${number(round)} that came round ${slower === 1 ? "turns" : "turn"} more slowly, up to ${about(slowest)} ` +
        "times, and tell distances apart less sharply.");
    } else if (method !== "none" && possible && wanted > trained && round)
      said.push("The pairs that came round stay as they were.");
    if (recipe.scores > 1 + 1e-9 && possible)
      said.push(`Scores are multiplied by ${number(recipe.scores, 2)} besides.`);
    // With pair 0 as it was, no two offsets have the same angles.
    if (wanted > trained && round && !(pairs[0].slower > 1 + 1e-9))
      said.push("Together, even the pairs that came round stand as they never stood.");
    return said.join(" ");
  }

  // --- the page ---------------------------------------------------------------------------------------------

  connectedCallback() {
    const given = this.given;
    if (given && !this.figure) {
      LengthExplorer.models = given.models;
      const { fields } = LengthExplorer;
      fields.model = { start: given.start, among: [...Object.keys(given.models), ""] };
      for (const name of ["base", "dim", "trained"]) fields[name].start = given.models[given.start][name];
    }
    super.connectedCallback();
  }

  html() {
    const { models, METHODS, MARKS, fields } = LengthExplorer;
    const options = (named) => Object.entries(named).map(([key, name]) => `<option value="${key}">${name}</option>`);
    const names = Object.fromEntries(Object.entries(models).map(([key, { name }]) => [key, name]));
    const typed = (name, label) => `
      <label>${label}
        <input type="number" name="${name}" min="${fields[name].from}" max="${fields[name].to}" inputmode="numeric"
          ${name === "dim" ? 'step="2"' : ""}></label>`;
    const tile = (name, title) => `
      <p data-is="${name}-tile"><span>${title}</span><b data-is="${name}-is"></b>
        <small data-is="${name}-says"></small></p>`;
    return `
      <div class="stage">
        <svg data-is="all" viewBox="0 -20 344 376" role="group"
          aria-label="Every pair: its turns, and how much it is slowed">
          <g aria-hidden="true">
            <text x="2" y="-8" data-is="title"></text>
            <g data-is="marks">${Object.entries(MARKS).map(([fate, [mark, word, x]]) => `
              <path class="mark ${fate}" d="M${x} 8${mark}"/><text x="${x + 8}" y="12">${word}</text>`).join("")}</g>
            <rect class="face" x="36" y="20" width="304" height="220" style="stroke: none"/>
            <path class="grid" data-is="grid"/><path class="once" data-is="once"/>
            <g data-is="scale"></g>
            <text class="pale" x="42" y="234">never came round</text>
            ${Object.keys(MARKS).map((fate) => `
              <path class="way ${fate}" data-is="${fate}-way"/>
              <path class="mark ${fate}" data-is="${fate}"/>`).join("")}
            <text x="2" y="262" data-is="slowed"></text>
            <path class="grid" d="M36 320H340"/><path class="bars" data-is="bars"/>
            <text class="end" x="32" y="324">1</text><text class="end" x="32" y="281" data-is="most"></text>
            <text x="36" y="342">0</text><text class="middle" x="188" y="342">pair</text>
            <text class="end" x="340" y="342" data-is="last"></text>
          </g>
          <g class="both" role="slider" tabindex="0" data-is="handle" aria-label="pair" aria-valuemin="0">
            <rect class="swipe" x="36" y="20" width="304" height="300"/>
            <path class="cursor" data-is="cursor" d="M0 20V320"/>
            <g data-is="knob"><circle class="knob" r="6"/><circle class="hit" r="23.3"/></g>
          </g>
        </svg>
        <div class="row slide"><label for="explorer-pair">pair <i>i</i></label>
          <input id="explorer-pair" type="number" name="pair" min="0" inputmode="numeric">
          <input type="range" name="pair" min="0" aria-label="pair"></div>
        <div class="one">
          <svg viewBox="-50 -50 100 100" aria-hidden="true">
            <circle class="face" r="46"/><path class="wedge" data-is="seen"/><path class="fresh" data-is="fresh"/>
            <path class="hand" data-is="reach"/>
          </svg>
          <p data-is="pair-says"></p>
        </div>
      </div>
      <div class="panel">
        <div class="row long"><label for="explorer-model">model</label>
          <select id="explorer-model" name="model">${options({ ...names, "": "your own" }).join("")}</select></div>
        <div class="three">
          ${typed("base", "base")}${typed("dim", "head width")}${typed("trained", "trained on")}
        </div>
        <p class="note" data-is="file"></p>
        <div class="row long"><label for="explorer-wanted">wanted</label>
          <input id="explorer-wanted" type="number" name="wanted" min="${fields.wanted.from}"
            max="${fields.wanted.to}" inputmode="numeric">
          <input type="range" data-is="times" min="0" max="8" step="0.125" aria-label="wanted length">
          <output data-is="times-is"></output></div>
        <div class="row long"><label for="explorer-method">method</label>
          <select id="explorer-method" name="method">${options(METHODS).join("")}</select></div>
        <div class="tiles loose">
          ${tile("never", "never round")}${tile("beyond", "go wider")}${tile("slower", "slowed")}
        </div>
        <p class="says" data-is="says"></p>
      </div>
      <div class="buttons wide"><button type="button" data-is="reset">reset</button></div>`;
  }

  begin() {
    this.parts = {};
    for (const element of this.figure.querySelectorAll("[data-is]")) this.parts[element.dataset.is] = element;
    const { times, reset, handle, all } = this.parts;
    times.addEventListener("input", () =>
      this.change({ wanted: this.setting.trained * 2 ** Number(times.value) }));
    reset.addEventListener("click", () => this.change(this.constructor.allowed({})));
    // Left and right go along the pairs; so do up and down, since the line falls.
    this.handle(handle,
      (by) => this.change({ pair: Math.max(0, Math.min(this.setting.dim / 2 - 1, this.setting.pair + by)) }),
      (event) => {
        const follow = (event) => {
          const [x] = MovingFigure.at(all, event), last = this.setting.dim / 2 - 1;
          this.change({ pair: Math.max(0, Math.round(((x - 44) / 288) * last)) });
        };
        if (event.pointerType === "mouse") follow(event);
        return follow;
      });
  }

  // With a model come its values, the method of its file, the length that this is for, and its first pair that
  // never came round.
  change(entries) {
    const model = LengthExplorer.models[entries.model];
    if (model) {
      const { base, dim, trained, longest, method } = model;
      const wanted = longest > trained ? longest : 8 * trained;
      const late = LengthExplorer.turns(LengthExplorer.frequencies(dim, base), trained).findIndex((turns) => turns < 1);
      entries = { pair: Math.max(late, 0), ...entries, base, dim, trained, wanted, method: method ?? "none" };
    }
    super.change(entries);
  }

  draw(before) {
    const { setting, parts } = this, { number, about, angle } = LengthExplorer;
    const model = LengthExplorer.models[setting.model], fates = LengthExplorer.fates(setting, model);
    const { pairs } = fates, last = pairs.length - 1, { trained, wanted, method, pair } = setting;
    // First, or a slider would keep within what it had.
    this.figure.querySelectorAll('[name="pair"]').forEach((input) => (input.max = last));
    this.fill();
    parts.times.value = Math.log2(wanted / trained);
    parts["times-is"].textContent = wanted < trained ? "< 1 ×" : `${about(wanted / trained)} ×`;
    parts.times.setAttribute("aria-valuetext",
      `${number(wanted)} tokens, ${about(wanted / trained)} times the trained length`);
    parts.file.textContent = !model ? "" :
      (model.head > model.dim ? `Of ${model.head} features of a head ${model.dim} turn. ` : "") +
      (model.method ? `Its file: ${LengthExplorer.METHODS[model.method]}, up to ${number(model.longest)} tokens.`
        : "Its file asks for no scaling.");

    const { never, beyond, slower, slowest, round } = fates;
    parts["never-is"].textContent = `${never} of ${pairs.length}`;
    parts["never-says"].textContent = never ? `from pair ${round}` : "all came round";
    parts["beyond-is"].textContent = `${beyond} of ${never}`;
    parts["beyond-says"].textContent = beyond ? `up to ${about(pairs[fates.widest].wider)}\u00a0×` : "no new angle";
    parts["beyond-tile"].classList.toggle("new", beyond > 0);
    parts["slower-is"].textContent = `${slower} of ${round}`;
    parts["slower-says"].textContent = slower ? `up to ${about(slowest)}\u00a0×` : "full speed";
    const aloud = before && (before.method !== method || before.model !== setting.model);
    // Said once: a second time, when the control is let go, would cut short who reads it out.
    if (before !== setting) this.say(LengthExplorer.words(setting, fates), aloud);

    this.drawAll(fates);
    this.drawOne(pairs[pair]);
    const one = pairs[pair];
    const told = `Pair ${pair}: ${angle(one.trained)} in ${number(trained)} tokens, ${angle(one.wanted)} in ` +
      `${number(wanted)}` + (one.slower > 1 + 1e-9 ? `, slowed ${about(one.slower)} times. ` : ". ") +
      {
        round: "It came round in training.",
        inside: "It never came round, and goes no further.",
        beyond: `It never came round: ${angle(Math.min(one.wanted, 1) - one.trained)} of its circle are new.`,
      }[one.fate];
    parts["pair-says"].textContent = told;
    for (const [key, value] of Object.entries({ valuemax: last, valuenow: pair, valuetext: told }))
      parts.handle.setAttribute(`aria-${key}`, value);
    this.figure.querySelector('[name="pair"][type="range"]').setAttribute("aria-valuetext", told);
  }

  drawAll({ pairs }) {
    const { parts } = this, { number, about } = LengthExplorer, last = pairs.length - 1;
    const all = pairs.flatMap(({ trained, wanted }) => [trained, wanted]).map(Math.log10);
    const low = Math.min(...all, -1) - 0.25, high = Math.max(...all, 1) + 0.25;
    const x = (i) => 44 + (288 * i) / last, y = (turns) => 240 - (220 * (Math.log10(turns) - low)) / (high - low);
    const at = (i, turns) => `${x(i).toFixed(1)} ${y(turns).toFixed(1)}`;

    const powers = [];
    for (let power = Math.ceil(low); power <= high; power++) powers.push(power);
    const every = Math.ceil(powers.length / 6), shown = powers.filter((power) => power % every === 0);
    parts.grid.setAttribute("d", shown.map((power) => `M36 ${y(10 ** power).toFixed(1)}H340`).join(""));
    parts.once.setAttribute("d", `M36 ${y(1).toFixed(1)}H340`);
    parts.scale.innerHTML = shown.map((power) =>
      `<text class="end" x="32" y="${(y(10 ** power) + 4).toFixed(1)}">${power < 3
        ? 10 ** power : `10<tspan dy="-4" font-size="9">${power}</tspan>`}</text>`).join("");
    parts.title.textContent =
      `turns: mark in ${number(this.setting.trained)} tokens, stroke to ${number(this.setting.wanted)}`;

    const size = Math.min(1, 190 / pairs.length), mark = (fate) =>
      LengthExplorer.MARKS[fate][0].replace(/-?\d+/g, (n) => (n * Math.max(0.6, size)).toFixed(1));
    for (const fate of Object.keys(LengthExplorer.MARKS)) {
      const here = pairs.map((pair, i) => [pair, i]).filter(([pair]) => pair.fate === fate);
      parts[fate].setAttribute("d", here.map(([pair, i]) => `M${at(i, pair.trained)}${mark(fate)}`).join(""));
      parts[`${fate}-way`].setAttribute("d", here.map(([pair, i]) =>
        `M${at(i, pair.trained)}L${at(i, pair.wanted)}`).join(""));
    }

    const most = Math.max(2, ...pairs.map((pair) => pair.slower));
    const height = (slower) => (44 * Math.log(Math.max(slower, 1))) / Math.log(most);
    parts.bars.setAttribute("stroke-width", Math.max(0.8, Math.min(6, 200 / pairs.length)).toFixed(1));
    parts.bars.setAttribute("d", pairs.map((pair, i) =>
      `M${x(i).toFixed(1)} 320v${(-height(pair.slower) - 0.01).toFixed(2)}`).join(""));
    const slowed = pairs.some((pair) => pair.slower > 1 + 1e-9);
    parts.slowed.textContent = slowed ? "slowed by" : "no pair is slowed";
    parts.most.textContent = slowed ? about(most) : "";
    parts.last.textContent = last;
    const chosen = pairs[this.setting.pair];
    parts.cursor.setAttribute("transform", `translate(${x(this.setting.pair).toFixed(1)} 0)`);
    parts.knob.setAttribute("transform", `translate(${at(this.setting.pair, chosen.trained)})`);
  }

  // The circle of the chosen pair: what training saw of it, and what is new. Angles run anticlockwise from the right.
  drawOne({ trained, wanted, fate }) {
    const point = (turns, radius = 46) => {
      const angle = 2 * Math.PI * turns;
      return `${(radius * Math.cos(angle)).toFixed(2)} ${(-radius * Math.sin(angle)).toFixed(2)}`;
    };
    // A whole circle has no end that differs from its start.
    const sector = (from, to) => to - from < 1e-6 ? "" :
      `M0 0L${point(from)}A46 46 0 ${to - from > 0.5 ? 1 : 0} 0 ${point(Math.min(to, from + 0.9999))}Z`;
    this.parts.seen.setAttribute("d", sector(0, Math.min(trained, 1)));
    this.parts.fresh.setAttribute("d", fate === "beyond" ? sector(trained, Math.min(wanted, 1)) : "");
    this.parts.reach.setAttribute("d", `M0 0L${point(wanted, 40)}`);
  }
}

customElements.define("length-explorer", LengthExplorer);
