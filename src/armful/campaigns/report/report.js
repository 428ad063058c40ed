"use strict";
// Draws every figure of the page in the colours of the theme, and again when the theme changes or the page is printed.
(() => {
  const THEMES = {
    light: {
      ink: "#1c1c1c", card: "#ffffff", grid: "#e4e7eb", clear: "rgba(0,0,0,0)", neutral: "#6b7280",
      accent: "#0072b2", soft: "#9fcbe6", faint: "#dcecf6", warm: "#b85000",
    },
    dark: {
      ink: "#e8eaed", card: "#1b2027", grid: "#343b45", clear: "rgba(0,0,0,0)", neutral: "#9aa4b2",
      accent: "#56b4e9", soft: "#2d6187", faint: "#1d3a50", warm: "#f0a050",
    },
  };
  const CONFIG = { displayModeBar: false, responsive: true, doubleClick: false };
  const PRINT_WIDTH = 660;
  const PRINT_HEIGHT = 300; // two sections to a page; what is higher has a row for each name and needs it
  const HEIGHT = 380;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const figures = [...document.querySelectorAll("[data-figure]")].map((place) => {
    const text = document.getElementById(place.dataset.figure).textContent;
    return { place, drawing: JSON.parse(text) };
  });

  // Only what is under a name that ends in "color" is the name of a role; everything else is data.
  function painted(value, palette, key = "") {
    if (Array.isArray(value)) return value.map((each) => painted(each, palette));
    if (value !== null && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, painted(each, palette, name)]));
    }
    return key.toLowerCase().endsWith("color") && value in palette ? palette[value] : value;
  }

  function draw(theme, width) {
    for (const { place, drawing } of figures) {
      const { data, layout } = painted(drawing, THEMES[theme]);
      if (width) {
        layout.width = width;
        if (layout.height === HEIGHT) layout.height = PRINT_HEIGHT;
      }
      const narrow = (width || place.clientWidth) < 480;
      if (narrow) {
        layout.margin = { ...layout.margin, l: 44, r: 8 };
        layout.font = { ...layout.font, size: 11 };
        const words = layout.xaxis.ticktext;
        if (words) layout.xaxis.ticktext = words.map((each) => each.split("<br>")[0]);
      }
      Plotly.react(place, data, layout, CONFIG);
    }
  }

  const redraw = () => draw(dark.matches ? "dark" : "light");
  redraw();
  dark.addEventListener("change", redraw);
  window.addEventListener("beforeprint", () => draw("light", PRINT_WIDTH));
  window.addEventListener("afterprint", redraw);
})();
