# What was compared (job-instances, verdict) and then times.tsv (round, job, contender, wall s, user s, system s, peak kB) to a Markdown
# table: each number of instances beside the plain command. Ratios are medians of those of each round.
BEGIN { FS = "\t" }
NF == 2 { verdict[$1] = $2; next }
{
  key = $2 "-" $3
  if (!(key in rounds)) { order[++keys] = key; job[key] = $2; name[key] = $3 }
  rounds[key]++
  wall[key, $1] = $4
  cpu[key, $1] = $5 + $6
  last = $1 > last ? $1 : last
}
END {
  print "| command | instances | wall s | CPU s | wall / plain | records |"
  print "|---|---|---|---|---|---|"
  for (i = 1; i <= keys; i++) {
    key = order[i]
    plain = job[key] "-plain"
    n = 0
    for (r = 1; r <= last; r++)
      if ((key, r) in wall) { n++; w[n] = wall[key, r]; c[n] = cpu[key, r]; q[n] = w[n] / wall[plain, r] }
    is_plain = key == plain
    printf "| %s | %s | %.1f | %.1f | %s | %s |\n", job[key], is_plain ? "plain" : name[key], median(w, n), median(c, n), \
      is_plain ? "" : sprintf("%.3f", median(q, n)), verdict[key]
  }
}
function median(list, n,    x, i, j, t) {
  for (i = 1; i <= n; i++) x[i] = list[i]
  for (i = 2; i <= n; i++) for (j = i; j > 1 && x[j - 1] > x[j]; j--) { t = x[j]; x[j] = x[j - 1]; x[j - 1] = t }
  return (x[int((n + 1) / 2)] + x[int(n / 2) + 1]) / 2
}
