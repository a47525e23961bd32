// Sphinx's weights, and a score that knows how often a chapter speaks of what was asked: see ranked.py.
var Scorer = {
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
  score: ([page, , , , score]) => {
    const words = (new URLSearchParams(location.search).get("q") || "").toLowerCase().match(/[\p{L}\p{N}_]+/gu) || [];
    const stemmer = new Stemmer();
    for (const word of words) {
      const counts = (typeof SearchCounts === "undefined" ? {} : SearchCounts)[stemmer.stemWord(word)] || {};
      if (Object.hasOwn(counts, page)) score += 20 / words.length * counts[page] / Math.max(...Object.values(counts));
    }
    // Pages that speak of everything come after the chapters.
    return /^(glossary|cheat-sheet|practice\/|use\/heard-and-checked)/.test(page) ? score / 3 : score;
  },
};
