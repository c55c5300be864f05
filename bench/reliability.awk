# Draws the reliability of mapping qualities as SVG. Input: lines of score.awk with a title and the program before each.
# A panel for each title, a line for each program. Observed and reported error rates are shown as -10 log10; the reported rate is the
# mean over the qualities of a range.
BEGIN {
  FS = "\t"
  ranges = split("1 10 20 30 40 50 60 256", from, " ")
  split("#1b9e77 #d95f02 #7570b3 #e7298a #66a61e #a6761d", colour, " ")
  size = 360; most = 65; left = 56; top = 40; gap = 44
}
$3 > 0 {
  for (range = 1; $3 >= from[range + 1]; range++);
  if (!($1 in panel)) { title[++panels] = $1; panel[$1] = panels }
  if (!($2 in drawn)) { program[++programs] = $2; drawn[$2] = programs }
  key = $1 SUBSEP $2 SUBSEP range
  reads[key] += $4; wrong[key] += $5; told[key] += $4 * 10 ^ (-$3 / 10)
}
END {
  right = left + panels * (size + gap)
  printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n", right + 190, top + size + 50
  print "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
  printf "<text transform=\"translate(14 %d) rotate(-90)\" text-anchor=\"middle\">observed quality</text>\n", top + size / 2
  for (p = 1; p <= panels; p++) {
    x = left + (p - 1) * (size + gap)
    printf "<text x=\"%d\" y=\"%d\" font-size=\"14\">%s</text>\n", x, top - 14, title[p]
    for (q = 0; q < most; q += 10) {
      printf "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>", x, x + size, down(q), down(q)
      printf "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%d</text>", x - 6, down(q) + 4, q
      printf "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n", x + across(q), top + size + 18, q
    }
    printf "<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke=\"#999\" stroke-dasharray=\"2 3\"/>\n", x, x + size, down(0), down(most)
    printf "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">reported quality</text>\n", x + size / 2, top + size + 38
    for (c = 1; c <= programs; c++) line(title[p], x, c)
  }
  x = right - gap + 24
  for (c = 1; c <= programs; c++) entry(x, top + 20 * c, colour[c], "", program[c])
  entry(x, top + 20 * c, "#999", " stroke-dasharray=\"2 3\"", "observed = reported")
  mark(x + 12, top + 20 * ++c, "black", "black", ""); words(x + 32, top + 20 * c, "ten or more wrong reads")
  mark(x + 12, top + 20 * ++c, "black", "white", ""); words(x + 32, top + 20 * c, "fewer wrong reads")
  none(x + 12, top + 20 * ++c + 5, "black", ""); words(x + 32, top + 20 * c, "no wrong read: lower bound")
  print "</svg>"
}
function down(quality) { return top + size * (1 - quality / most) }
function across(quality) { return size * quality / most }
function scaled(share) { return -10 * log(share) / log(10) }
# A program's qualities, a point for each range that 100 reads have.
function line(title, x, c,    range, key, at, y, points, label) {
  for (range = 1; range < ranges; range++) {
    key = title SUBSEP program[c] SUBSEP range
    if (reads[key] < 100) continue
    label = sprintf("%s, %d–%d: %d wrong of %d, %.1f expected", program[c], from[range], from[range + 1] - 1, wrong[key], reads[key], told[key])
    at = x + across(scaled(told[key] / reads[key]))
    # Beyond the panel's edge stands what does not fit.
    y = down(least(scaled((wrong[key] ? wrong[key] : 1) / reads[key]), most))
    # Beside each other, as many reads may be the same number for several programs.
    if (!wrong[key]) { none(at + 4 * (c - (programs + 1) / 2), y, colour[c], label); through(points, colour[c]); points = ""; continue }
    points = points sprintf(" %.1f %.1f", at, y)
    mark(at, y, colour[c], wrong[key] < 10 ? "white" : colour[c], label)
  }
  through(points, colour[c])
}
function through(points, colour) {
  if (points) printf "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" points=\"%s\"/>\n", colour, points
}
function least(a, b) { return a < b ? a : b }
function mark(x, y, colour, fill, label) {
  printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\" stroke=\"%s\"><title>%s</title></circle>\n", x, y, fill, colour, label
}
# No read is wrong: an arrow from where one would be.
function none(x, y, colour, label) {
  printf "<path d=\"M%.1f %.1fv-10m-4 4l4 -4l4 4\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"><title>%s</title></path>\n", x, y, colour, label
}
function words(x, y, label) { printf "<text x=\"%d\" y=\"%d\">%s</text>\n", x, y + 4, label }
function entry(x, y, colour, dashes, label) {
  printf "<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke=\"%s\" stroke-width=\"1.5\"%s/>", x, x + 24, y, y, colour, dashes
  words(x + 32, y, label)
}
