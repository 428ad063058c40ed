"use strict";
// Before anything is drawn: the theme that was picked the last time.
(() => {
  try {
    const theme = localStorage.getItem("armful-theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // a browser that keeps nothing shows the theme of the system
  }
})();
