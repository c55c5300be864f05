# Found and missed variants, a line each (tumour depth, caller, class, share of the molecules, 1 or 0), to a picture (SVG): recall by share, a line for each
# depth and caller. Shares are put together when they are within a third of each other.
BEGIN {
  FS = "\t"
  split("0.04 0.055 0.075 0.105 0.15 0.21 0.28 0.4 0.6 1.01", edge, " ")
  split("#1b9e77 #d95f02 #7570b3 #e7298a #66a61e #a6761d", colour, " ")
  width = 360; height = 260; left = 48; top = 40; gap = 40
}
{
  for (bin = 1; bin <= 10 && $4 >= edge[bin]; bin++);
  key = $3 SUBSEP $2 SUBSEP $1 SUBSEP bin
  all[key]++; found[key] += $5; share[key] += $4
  if (!($1 in number)) { depth[++depths] = $1; number[$1] = depths }
  if (!($2 in drawn)) { caller[++callers] = $2; drawn[$2] = callers }
  classes[$3] = 1
}
END {
  panel["SNV"] = left; panel["INDEL"] = left + width + gap
  printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n", left + 2 * width + gap + 150, top + height + 50
  print "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
  for (class in panel) {
    x = panel[class]
    printf "<text x=\"%d\" y=\"%d\" font-size=\"14\">%s</text>\n", x, top - 14, class == "SNV" ? "SNVs" : "Indels"
    for (y = 0; y <= 10; y += 2) {
      printf "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>", x, x + width, down(y / 10), down(y / 10)
      printf "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.1f</text>\n", x - 6, down(y / 10) + 4, y / 10
    }
    n = split("0.03 0.05 0.1 0.2 0.3 0.5 1", tick, " ")
    for (i = 1; i <= n; i++)
      printf "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x + across(tick[i]), top + height + 18, tick[i]
    printf "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">share of the molecules that have the variant</text>\n", x + width / 2, top + height + 38
    for (c = 1; c <= callers; c++) for (d = 1; d <= depths; d++) line(class, x, c, d)
  }
  x = left + 2 * width + gap + 16
  for (d = 1; d <= depths; d++) entry(x, top + 10 + 20 * d, colour[d], 1, "tumour " depth[d] "x")
  for (c = 1; c <= callers; c++) entry(x, top + 30 + 20 * (depths + c), "black", c, caller[c])
  print "</svg>"
}
function down(recall) { return top + height * (1 - recall) }
function across(share) { return width * log(share / 0.03) / log(1 / 0.03) }
function dashes(c) { return c == 1 ? "" : " stroke-dasharray=\"5 4\"" }
function fill(c, colour) { return c == 1 ? colour : "white" }
# A caller's recall at one depth, a point for each share.
function line(class, x, c, d,    bin, key, points, marks) {
  for (bin = 1; bin <= 11; bin++) {
    key = class SUBSEP caller[c] SUBSEP depth[d] SUBSEP bin
    if (all[key] < 10) continue
    at = sprintf("%.1f", x + across(share[key] / all[key])) " " sprintf("%.1f", down(found[key] / all[key]))
    points = points " " at
    split(at, place, " ")
    marks = marks sprintf("<circle cx=\"%s\" cy=\"%s\" r=\"3.5\" fill=\"%s\" stroke=\"%s\"><title>%s %sx: %d of %d</title></circle>\n", place[1], place[2], fill(c, colour[d]), colour[d], caller[c], depth[d], found[key], all[key])
  }
  if (points) printf "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"%s points=\"%s\"/>\n%s", colour[d], dashes(c), points, marks
}
function entry(x, y, colour, c, words) {
  printf "<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke=\"%s\" stroke-width=\"1.5\"%s/>", x, x + 24, y, y, colour, dashes(c)
  printf "<text x=\"%d\" y=\"%d\">%s</text>\n", x + 32, y + 4, words
}
