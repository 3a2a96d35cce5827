// The look of the page: two sets of colours that the colour-blind can tell apart, after Okabe and
// Ito, for light and for dark.
#pragma once

namespace strata::bench {

inline constexpr char kHtmlStyle[] = R"css(
:root { color-scheme: light dark; --paper: #fcfcfb; --ink: #1d2126; --muted: #5d6670;
  --rule: #e3e5e8;
  --card: #ffffff; --c0: #0072b2; --c1: #d55e00; --c2: #8f5fb3; --c3: #009e73; --c4: #c98a00;
  --p0: #0b4f83; --p1: #4a90c2; --p2: #a3cbe6; --p3: #b9bec4; --ref: #d4d7da; --good: #00714f;
  --bad: #b34700; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14171a; --ink: #e8eaed; --muted: #9aa3ad; --rule: #2c3238; --card: #1b1f23;
    --c0: #56b4e9; --c1: #ff8c42; --c2: #c79be8; --c3: #2fc79a; --c4: #f0c54a;
    --p0: #7cc4f5; --p1: #3f8fc7; --p2: #225f8c; --p3: #59636d; --ref: #3a4149; --good: #2fc79a;
    --bad: #ff8c42; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 1200px; margin: 0 auto; padding: 40px 24px 64px; }
h1 { font-size: 30px; line-height: 1.2; margin: 0 0 8px; letter-spacing: -0.01em; }
h2 { font-size: 21px; margin: 52px 0 4px; }
h3 { font-size: 14px; margin: 0 0 8px; font-weight: 600; }
p { margin: 0 0 14px; max-width: 78ch; }
.muted, small, figcaption { color: var(--muted); }
small { font-size: 13px; }
.pair { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 500px), 1fr));
  gap: 20px; }
figure { margin: 0; padding: 16px 18px 10px; background: var(--card);
  border: 1px solid var(--rule); border-radius: 8px; }
svg { display: block; width: 100%; height: auto; }
svg text { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif;
  fill: var(--ink); }
svg .tick { fill: var(--muted); font-size: 11.5px; }
svg .end { text-anchor: end; }
svg .middle { text-anchor: middle; }
svg .value { font-variant-numeric: tabular-nums; }
svg .grid { stroke: var(--rule); }
svg .axis { stroke: var(--muted); }
svg .line { fill: none; stroke-width: 2.2; stroke-linejoin: round; }
svg .leader { stroke-width: 1; opacity: 0.55; }
svg .mark { stroke: var(--card); stroke-width: 1.2; }
svg .line.c0, svg .leader.c0 { stroke: var(--c0); } svg .mark.c0 { fill: var(--c0); }
svg .line.c1, svg .leader.c1 { stroke: var(--c1); } svg .mark.c1 { fill: var(--c1); }
svg .line.c2, svg .leader.c2 { stroke: var(--c2); } svg .mark.c2 { fill: var(--c2); }
svg .line.c3, svg .leader.c3 { stroke: var(--c3); } svg .mark.c3 { fill: var(--c3); }
svg .line.c4, svg .leader.c4 { stroke: var(--c4); } svg .mark.c4 { fill: var(--c4); }
svg .line.c5, svg .leader.c5 { stroke: var(--muted); } svg .mark.c5 { fill: var(--muted); }
svg .line.c5 { stroke-dasharray: 3 4; stroke-width: 1.5; }
.part0 { fill: var(--p0); } .part1 { fill: var(--p1); } .part2 { fill: var(--p2); }
  .part3 { fill: var(--p3); }
.reference { fill: var(--ref); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 15px;
  font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 9px 12px; border-bottom: 1px solid var(--rule);
  vertical-align: top; }
th:first-child, td:first-child { text-align: left; }
th { font-size: 13px; font-weight: 600; color: var(--muted); }
table { table-layout: fixed; min-width: 640px; } th:first-child { width: 26%; }
td small { display: block; }
.note { margin-top: 10px; }
.met { color: var(--good); font-weight: 600; } .missed { color: var(--bad); font-weight: 600; }
details { margin-top: 28px; } summary { cursor: pointer; font-weight: 600; }
)css";

}  // namespace strata::bench
