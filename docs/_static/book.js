// A box that scrolls must be reachable by keyboard, and only a box that scrolls should be.
function reachable() {
  for (const box of document.querySelectorAll("article pre, article .table-wrapper, article .formula")) {
    if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}
// Fonts change widths, so look again when they are there.
document.addEventListener("DOMContentLoaded", () => document.fonts.ready.then(reachable));
window.addEventListener("resize", reachable);
