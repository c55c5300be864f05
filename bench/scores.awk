# Lines of score.awk, the program in front of each, to two Markdown tables: errors at equal qualities, how many
# reads have them, errors among equally many reads; and how often each range of qualities is wrong beside how often it says so.
BEGIN {
  FS = "\t"
  split("80 90 95 98", share, " ")
  split("60 30 20 10", least, " ")
  split("60 20", high, " ")
  split("0 1 10 20 30 40 60", from, " ")
  split("0 1–9 10–19 20–29 30–39 40–59 ≥60", range, " ")
}
!($1 in all) { program[++programs] = $1 }
{
  all[$1] += $3
  if ($2 < 0) next
  mapped[$1] += $3
  wrong[$1] += $4
  reads[$1, $2] = $3
  bad[$1, $2] = $4
}
END {
  print "| program | mapped % | right % | wrong of MAPQ ≥60 | ≥30 | ≥20 | ≥10 | % of MAPQ ≥60 | ≥20 | wrong per million of the best 80% | 90% | 95% | 98% |"
  print "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
  for (p = 1; p <= programs; p++) {
    name = program[p]
    printf "| %s | %.2f | %.2f |", name, 100 * mapped[name] / all[name], 100 * (mapped[name] - wrong[name]) / all[name]
    for (i = 1; i <= 4; i++) printf " %s |", at_least(name, least[i])
    for (i = 1; i <= 2; i++) printf " %.2f |", reads_of(name, high[i])
    for (i = 1; i <= 4; i++) printf " %s |", of_best(name, share[i])
    print ""
  }
  printf "\n| MAPQ |"
  for (p = 1; p <= programs; p++) printf " %s |", program[p]
  printf "\n|---|"
  for (p = 1; p <= programs; p++) printf "---|"
  print ""
  for (i = 1; i <= 7; i++) {
    printf "| %s |", range[i]
    for (p = 1; p <= programs; p++) printf " %s |", said(program[p], from[i], i < 7 ? from[i + 1] - 1 : 255)
    print ""
  }
}
# Wrong reads of a quality and above.
function at_least(name, quality,    q, n, w) {
  for (q = quality; q < 256; q++) { n += reads[name, q]; w += bad[name, q] }
  return n ? w : "–"
}
# Reads of a quality and above, in % of all.
function reads_of(name, quality,    q, n) {
  for (q = quality; q < 256; q++) n += reads[name, q]
  return 100 * n / all[name]
}
# Wrong ones in a million of the share of all reads with the highest qualities; of the last quality that is needed, evenly.
function of_best(name, percent,    q, left, take, w) {
  left = all[name] * percent / 100
  for (q = 255; q >= 0 && left > 0; q--) {
    if (!reads[name, q]) continue
    take = reads[name, q] < left ? reads[name, q] : left
    w += bad[name, q] * take / reads[name, q]
    left -= take
  }
  return left > 0.5 ? "–" : sprintf("%.1f", w / (all[name] * percent / 100) * 1e6)
}
# Share of the reads with qualities in a range, wrong ones, and how many would be wrong if qualities were true.
function said(name, low, high,    q, n, w, told) {
  for (q = low; q <= high; q++) { n += reads[name, q]; w += bad[name, q]; told += reads[name, q] * 10 ^ (-q / 10) }
  return n ? sprintf("%.2f%%: %d (%s)", 100 * n / all[name], w, low ? sprintf(told < 10 ? "%.1f" : "%d", told) : "–") : "–"
}
