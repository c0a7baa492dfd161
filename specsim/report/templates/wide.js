"use strict";
// Tables wider than the page: a note above says so, and a shadow stands on the side where more is to come.

for (const pane of document.querySelectorAll(".scroll")) {
  const look = () => {
    const hidden = pane.scrollWidth - pane.clientWidth;
    pane.classList.toggle("wide", hidden > 1);
    pane.classList.toggle("cut", hidden - pane.scrollLeft > 1);
    pane.previousElementSibling.hidden = hidden <= 1;
  };
  pane.addEventListener("scroll", look, { passive: true });
  new ResizeObserver(look).observe(pane);
  look();
}
