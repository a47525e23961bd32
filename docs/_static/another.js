// One question at a time, in an order of chance, each once before any comes again. Without this script, and on
// paper, all questions simply stand there.
"use strict";
(() => {
  function make(tag, properties, text) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
    element.textContent = text ?? "";
    return element;
  }

  // Whole numbers below n in an order of chance (Fisher and Yates). `first` is not the first of them, so that
  // the last question of one round does not open the next.
  function shuffled(n, first, chance = Math.random) {
    const order = Array.from({ length: n }, (_, i) => i);
    for (let i = n - 1; i > 0; i--) {
      const j = Math.floor(chance() * (i + 1));
      [order[i], order[j]] = [order[j], order[i]];
    }
    if (n > 1 && order[0] === first) order.push(order.shift());
    return order;
  }

  class ShowAnother extends HTMLElement {
    static shuffled = shuffled;

    connectedCallback() {
      if (this.questions) return;
      const boxes = [...document.querySelectorAll("article .question")];
      this.questions = boxes.map((box) => ({ box, fold: box.nextElementSibling }));
      this.waiting = [];
      this.now = null;
      this.next = this.button("Show me another", () => this.another());
      this.answer = this.button("Answer", () => this.toggle());
      this.all = this.button("All questions", () => this.show(null));
      this.said = make("p", { class: "said", role: "status" });
      this.append(this.next, this.answer, this.all, this.said);
      for (const { fold } of this.questions) fold.addEventListener("toggle", () => this.tell());
      // An address that names a question means that one, wherever the control was.
      addEventListener("hashchange", () => this.follow());
      this.tell();
    }

    button(text, act) {
      const button = make("button", { type: "button" }, text);
      // Not `disabled`: a button that is disabled loses the focus.
      button.addEventListener("click", () => button.getAttribute("aria-disabled") === "true" || act());
      return button;
    }

    another() {
      if (!this.waiting.length) this.waiting = shuffled(this.questions.length, this.now);
      this.show(this.waiting.shift());
    }

    // The question with this number alone, or all of them.
    show(number) {
      this.now = number;
      if (number === null) this.waiting = [];
      this.questions.forEach(({ box, fold }, i) => {
        const away = number !== null && i !== number;
        box.classList.toggle("put-away", away);
        fold.classList.toggle("put-away", away);
        if (number !== null) fold.open = false;
      });
      this.tell(true);
      if (number !== null) this.scrollIntoView({ block: "nearest" });
    }

    toggle() {
      const { fold } = this.questions[this.now];
      fold.open = !fold.open;
    }

    follow() {
      const named = this.questions.findIndex(({ box }) => `#${box.id}` === location.hash);
      if (this.now === null || named < 0 || named === this.now) return;
      this.show(null);
      this.questions[named].box.scrollIntoView();
    }

    tell(aloud) {
      const one = this.now !== null;
      for (const button of [this.answer, this.all]) button.setAttribute("aria-disabled", !one);
      const open = one && this.questions[this.now].fold.open;
      this.answer.textContent = open ? "Hide the answer" : "Answer";
      if (!aloud) return;
      const left = this.waiting.length, count = this.questions.length;
      const text = one && this.questions[this.now].box.querySelector("p:not(.admonition-title)");
      const seen = left ? `${left} of ${count} still to come.` : `That was the last of ${count}; then they come again.`;
      this.said.replaceChildren(one ? seen : `All ${count} questions.`);
      // Who hears the page is told the question; who sees it has it below.
      if (one) this.said.append(make("span", { class: "heard-only" }, ` ${spoken(text)}`));
    }
  }

  // Text without what KaTeX draws twice, once for the eye and once for the ear.
  function spoken(element) {
    const copy = element.cloneNode(true);
    for (const drawn of copy.querySelectorAll(".katex-html")) drawn.remove();
    for (const source of copy.querySelectorAll("annotation")) source.remove();
    return copy.textContent.trim();
  }

  customElements.define("show-another", ShowAnother);
})();
