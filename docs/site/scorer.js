// What search shows first: pages that explain, then the reference, then measurements and sources.
const INSIDE = ["architecture", "contributing", "engine", "testing"];

var Scorer = {
  score: ([docname, title, anchor, descr, score]) => {
    if (docname.startsWith("sources/") || docname === "changelog") return score - 20;
    if (docname.startsWith("benchmarks/")) return score - 10;
    if (docname.startsWith("reference/") && anchor) return score - 12; // a member of a class
    if (docname.startsWith("reference/")) return score - 2;
    if (INSIDE.includes(docname)) return score - 2;
    if (docname.startsWith("gallery/")) return score - 1;
    return score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
