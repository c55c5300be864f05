# SAM of reads named by `genuma bench simulate --true-positions` to one line a mapping quality: quality, reads, wrong ones.
# A primary record is right when it is on the true contig and strand and one of its ends, clipped bases counted, is at most
# 10 bp from the truth: one, as an indel in the sample moves the other. Unmapped reads have quality -1.
BEGIN { FS = "\t" }
/^@/ { next }
int($2 / 256) % 2 || int($2 / 2048) % 2 { next }
{
  split($1, told, ",")
  at = 2 + 4 * (int($2 / 128) % 2)
  if (told[at] == "*") next
  quality = int($2 / 4) % 2 ? -1 : $5
  reads[quality]++
  if (quality < 0) next
  first = $4
  last = $4 - 1
  front = 1
  cigar = $6
  while (match(cigar, /^[0-9]+[A-Z=]/)) {
    size = substr(cigar, 1, RLENGTH - 1) + 0
    kind = substr(cigar, RLENGTH, 1)
    cigar = substr(cigar, RLENGTH + 1)
    if (kind == "S" || kind == "H") {
      if (front) first -= size
      else last += size
      continue
    }
    front = 0
    if (kind != "I" && kind != "P") last += size
  }
  strand = int($2 / 16) % 2 ? "-" : "+"
  if ($3 != told[at] || strand != told[at + 3] || (far(first - told[at + 1]) && far(last - told[at + 2]))) wrong[quality]++
}
END { for (quality in reads) printf "%d\t%d\t%d\n", quality, reads[quality], wrong[quality] }
function far(bases) { return bases > 10 || bases < -10 }
