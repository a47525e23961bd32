// A box that scrolls must be reachable by keyboard, and only a box that scrolls should be.
function reachable() {
  for (const box of document.querySelectorAll("article pre, article .table-wrapper")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}
document.addEventListener("DOMContentLoaded", reachable);
window.addEventListener("resize", reachable);
