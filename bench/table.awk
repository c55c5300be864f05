# times.tsv (round, contender, step, wall s, user s, system s, peak kB) to two Markdown tables: each contender beside genuma,
# then each step. Steps of a round add up; their peaks do not; rounds give medians.
BEGIN { FS = "\t" }
{
  note("step", $2 "\t" $3, $1)
  if ($2 != "index") note("total", $2, $1)
}
END {
  print "| | wall s | CPU s | peak MB | wall / genuma | CPU / genuma |"
  print "|---|---|---|---|---|---|"
  for (i = 1; i <= count["total"]; i++) {
    key = order["total", i]
    print "| " name[key] " | " figures("total", key) " | " ratio(key, "wall") " | " ratio(key, "cpu") " |"
  }
  print "\n| contender | step | wall s | CPU s | peak MB |"
  print "|---|---|---|---|---|"
  for (i = 1; i <= count["step"]; i++) {
    key = order["step", i]
    split(key, part, "\t")
    print "| " part[1] " | " part[2] " | " figures("step", key) " |"
  }
}
# Adds the line in hand to one row of a table.
function note(table, key, round) {
  if (!((table, key) in rounds)) order[table, ++count[table]] = key
  if (!((table, key, round) in seen)) {
    seen[table, key, round] = 1
    rounds[table, key]++
    nth[table, key, rounds[table, key]] = round
  }
  sum[table, key, round, "wall"] += $4
  sum[table, key, round, "cpu"] += $5 + $6
  if ($7 > sum[table, key, round, "peak"]) sum[table, key, round, "peak"] = $7
  name["bwa"] = "bwa mem alone"
  name["peers"] = "bwa + sort + markdup + Mutect2 + Delly"
  name["engine"] = "genuma align + Mutect2 + Delly"
  name["genuma"] = "genuma call"
}
function median(table, key, what,    n, i, j, swap, value) {
  n = rounds[table, key]
  for (i = 1; i <= n; i++) value[i] = sum[table, key, nth[table, key, i], what]
  for (i = 1; i < n; i++)
    for (j = i + 1; j <= n; j++)
      if (value[j] < value[i]) { swap = value[i]; value[i] = value[j]; value[j] = swap }
  return (value[int((n + 1) / 2)] + value[int(n / 2) + 1]) / 2
}
function figures(table, key) {
  return sprintf("%.1f | %.1f | %.0f", median(table, key, "wall"), median(table, key, "cpu"), median(table, key, "peak") / 1024)
}
function ratio(key, what) {
  if (!(("total", "genuma") in rounds)) return "–"
  return sprintf("%.2f", median("total", key, what) / median("total", "genuma", what))
}
