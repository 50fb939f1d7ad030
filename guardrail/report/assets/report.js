"use strict";
(() => {
  const root = document.documentElement;
  const asked = (location.search + location.hash).match(/theme=(light|dark)/);
  let kept = null;
  try { kept = localStorage.getItem("guardrail-theme"); } catch { /* no storage for files */ }
  if (asked || kept) root.dataset.theme = asked ? asked[1] : kept;

  const dark = () => root.dataset.theme
    ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const turn = () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("guardrail-theme", root.dataset.theme); } catch { /* as above */ }
  };
  document.getElementById("theme").addEventListener("click", turn);

  const answers = [...document.querySelectorAll("details.answer")];
  const open = () => {
    const there = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (there && there.matches("details.answer")) {
      there.open = true;
      there.scrollIntoView();
      there.querySelector("summary").focus({ preventScroll: true });
    }
  };
  addEventListener("hashchange", open);
  open();

  const search = document.getElementById("search");
  const found = document.getElementById("found");
  if (search) search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const one of answers) {
      const text = one.textContent.toLowerCase();
      one.hidden = !words.every((word) => text.includes(word));
      shown += one.hidden ? 0 : 1;
    }
    found.textContent = words.length ? `${shown} found` : "";
  });

  const move = (step) => {
    const seen = answers.filter((one) => !one.hidden);
    const now = seen.indexOf(document.activeElement.closest("details.answer"));
    const next = seen[Math.min(seen.length - 1, Math.max(0, now + step))];
    if (next) next.querySelector("summary").focus();
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input")) return;
    const what = { j: () => move(1), k: () => move(-1), t: turn,
      "/": () => search && search.focus() }[event.key];
    if (what) { event.preventDefault(); what(); }
  });

  let printing = [];
  addEventListener("beforeprint", () => {
    printing = answers.filter((one) => !one.open).slice(0, 20);
    for (const one of printing) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of printing) one.open = false; });

  const url = document.body.dataset.feedback;
  if (!url) return;
  addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-thumb]");
    if (!button) return;
    const thumb = Number(button.dataset.thumb);
    const correction = thumb === 0 ? prompt("What should it say?") : null;
    if (thumb === 0 && !correction) return;
    const row = button.closest("[data-sentence]");
    const reply = await fetch(url, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({
        record_id: button.closest("details.answer").dataset.id,
        sentence: Number(row.dataset.sentence), thumb, correction,
      }),
    }).catch(() => null);
    for (const one of button.parentNode.children) one.removeAttribute("aria-pressed");
    if (reply && reply.ok) button.setAttribute("aria-pressed", "true");
    else alert("The feedback could not be stored.");
  });
  setInterval(() => {
    if (!answers.some((one) => one.open) && !(search && search.value)) location.reload();
  }, 1000 * Number(document.body.dataset.refresh));
})();
