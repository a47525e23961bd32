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

// The contents beside the page begin at its own line, however long they are.
document.addEventListener("DOMContentLoaded", () => {
  const box = document.querySelector(".sidebar-scroll"), here = box?.querySelector(".current-page");
  if (here && box.scrollHeight > box.clientHeight)
    box.scrollTop += here.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 3;
});
