#!/usr/bin/env bash
# Times counting on a device beside all threads: simulates a pair where it runs, counts it by threads alone, by a device beside them, and by
# the device alone, then calls it without and with the device. Results are compared byte by byte; a difference ends the bench.
#
# usage: bench/gpu.sh [--device DEVICE] [--genome-length BP] [--k K] [--memory GB] [--threads N] [--rounds N] [--out DIR]
#   --device DEVICE      number or name, as `genuma machine show` shows it (the first GPU; 0 if there is none)
#   --genome-length BP   of the made genome, at 30x each (100000000: 3 Gbp of reads a sample)
#   --k K                length of k-mers (31)
#   --memory GB          of the process (16)
#   --threads N          (all processors)
#   --rounds N           how often everything is run, in turns; the tables show medians (3)
#   --out DIR            where data and runs go (target/bench-gpu)
#
# "bins to k-mers" is the step from super-k-mers in bins, in host memory where that is enough, to counted k-mers in parts; with a device it begins
# with compiling the kernels, which drivers keep from the first run on. Joules are those of the processors' packages (RAPL) and of the device
# (nvidia-smi, or hwmon of amdgpu, sampled ten times a second) while the run lasts; "not readable" where the kernel or the driver does not tell.
set -euo pipefail
cd "$(dirname "$0")/.."

device= length=100000000 k=31 memory=16 threads=$(nproc) rounds=3 out=target/bench-gpu
while [ $# -gt 0 ]; do
  if [ $# -lt 2 ]; then
    echo "gpu: $1 needs a value, or is no option: see the head of bench/gpu.sh" >&2
    exit 2
  fi
  case $1 in
    --device) device=$2 ;;
    --genome-length) length=$2 ;;
    --k) k=$2 ;;
    --memory) memory=$2 ;;
    --threads) threads=$2 ;;
    --rounds) rounds=$2 ;;
    --out) out=$2 ;;
    *)
      echo "gpu: no option $1: see the head of bench/gpu.sh" >&2
      exit 2
      ;;
  esac
  shift 2
done

genuma=${GENUMA:-${CARGO_TARGET_DIR:-target}/release/genuma}
[ -n "${GENUMA:-}" ] || cargo build --quiet --release --locked --package genuma
# PoCL presents the CPUs as a device, often as device 0.
[ -n "$device" ] || device=$("$genuma" machine show | awk '/: GPU,/ { print $1; found = 1; exit } END { if (!found) print 0 }')
mkdir -p "$out"
data=$out/data-$length
if [ ! -f "$data/truth.vcf" ]; then
  "$genuma" bench simulate --quiet -o "$data" --genome-length "$length" --depth-normal 30 --depth-tumor 30
fi
normal=("$data"/normal_[12].fq.gz) tumor=("$data"/tumor_[12].fq.gz)
runs=$out/runs.tsv
: >"$runs"
sampler=
trap '[ -z "$sampler" ] || kill "$sampler" 2>/dev/null || true; rm -rf "$out"/x.tsv "$out"/first.tsv "$out"/call-* "$out"/watts' EXIT

# Microjoules of all packages so far, or nothing.
packages() {
  local sum=0 file any=
  for file in /sys/class/powercap/intel-rapl:[0-9]*/energy_uj; do
    case $file in *:*:*) continue ;; esac
    [ -r "$file" ] || continue
    any=1 sum=$((sum + $(cat "$file")))
  done
  [ -z "$any" ] || echo "$sum"
}

# Samples the device's power into a file, one number a line, in watts.
watts() {
  : >"$out/watts"
  local hwmon
  if command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=power.draw --format=csv,noheader,nounits >/dev/null 2>&1; then
    nvidia-smi --query-gpu=power.draw --format=csv,noheader,nounits -lms 100 >"$out/watts" 2>/dev/null &
    sampler=$!
    return
  fi
  for hwmon in /sys/class/drm/card*/device/hwmon/hwmon*/power1_average; do
    [ -r "$hwmon" ] || continue
    while sleep 0.1; do awk '{ print $1 / 1e6 }' "$hwmon"; done >"$out/watts" 2>/dev/null &
    sampler=$!
    return
  done
}

# measured WHO COMMAND...: notes what a run took: who, wall s, joules of packages and device or a dash.
measured() {
  local who=$1 before after start end cpu=- gpu=-
  shift
  sampler=
  watts
  before=$(packages) start=$(date +%s.%N)
  "$@" >"$out/last.log" 2>&1 || {
    tail -n 5 "$out/last.log" >&2
    exit 1
  }
  end=$(date +%s.%N) after=$(packages)
  if [ -n "$sampler" ]; then
    kill "$sampler" 2>/dev/null || true
    wait "$sampler" 2>/dev/null || true
    sampler=
  fi
  # A counter that has gone round is left out.
  if [ -n "$before" ] && [ "$after" -ge "$before" ]; then cpu=$(((after - before) / 1000000)); fi
  if [ -s "$out/watts" ]; then
    gpu=$(awk -v s="$start" -v e="$end" '{ sum += $1 } END { printf "%.0f", sum / NR * (e - s) }' "$out/watts")
  fi
  awk -v who="$who" -v s="$start" -v e="$end" -v cpu="$cpu" -v gpu="$gpu" -v OFS='\t' 'BEGIN { print who, e - s, cpu, gpu }' >>"$runs"
}

# count WHO TRIAL GPU
count() {
  GENUMA_GPU_TRIAL=$2 measured "count, $1" "$genuma" kmers count -k "$k" -t "$threads" --memory "${memory}G" --normal "${normal[@]}" \
    --tumor "${tumor[@]}" -o "$out/x.tsv" --json "$out/count-$1-$round.json" --gpu "$3"
  if [ -f "$out/first.tsv" ]; then
    cmp "$out/first.tsv" "$out/x.tsv"
  else
    mv "$out/x.tsv" "$out/first.tsv"
  fi
}

# call WHO GPU
call() {
  rm -rf "$out/call-$1"
  measured "call, $1" "$genuma" call -t "$threads" --memory "${memory}G" --normal "${normal[@]}" --tumor "${tumor[@]}" \
    --reference "$data/genome.fa" -o "$out/call-$1" --gpu "$2"
  cp "$out/call-$1/summary.json" "$out/call-$1-$round.json"
}

for ((round = 1; round <= rounds; round++)); do
  echo "gpu: round $round of $rounds" >&2
  count threads '' off
  count both '' "$device"
  count device alone=1 "$device"
  call threads off
  call both "$device"
  cmp <(gzip -dc "$out/call-threads/somatic.vcf.gz") <(gzip -dc "$out/call-both/somatic.vcf.gz")
  cmp "$out/call-threads/contigs.fa" "$out/call-both/contigs.fa"
done

python3 - "$out" "$rounds" "$threads" <<'P'
import json, statistics, sys
out, rounds, threads = sys.argv[1], int(sys.argv[2]), sys.argv[3]
median = statistics.median
def load(name):
    return [json.load(open(f"{out}/{name}-{i}.json")) for i in range(1, rounds + 1)]
rows = [line.rstrip("\n").split("\t") for line in open(f"{out}/runs.tsv")]
def joules(which, column):
    seen = [float(row[column]) for row in rows if row[0] == which and row[column] != "-"]
    return f"{median(seen):.0f}" if seen else "not readable"
def wall(which):
    return median(float(row[1]) for row in rows if row[0] == which)
print(f"| {threads} threads | bins on devices | bins to k-mers, M k-mers/s | reading s | bins to k-mers s | writing s | whole s | joules of CPUs | joules of the device |")
print("|---|---|---|---|---|---|---|---|---|")
for who, name in (("threads", "threads"), ("both", "threads and device"), ("device", "device alone")):
    runs = load(f"count-{who}")
    steps = {step["name"]: median(s["wall_s"] for run in runs for s in run["steps"] if s["name"] == step["name"]) for step in runs[0]["steps"]}
    kmers = sum(sample["kmers"] for sample in runs[0]["samples"])
    on = median(run["bins_on_devices"] for run in runs)
    which = f"count, {who}"
    print(f"| count, {name} | {on:.0f} of {runs[0]['bins']} | {kmers / steps['count'] / 1e6:.1f} | {steps['read']:.1f} | {steps['count']:.1f} | {steps['write']:.1f} | {wall(which):.1f} | {joules(which, 2)} | {joules(which, 3)} |")
print()
print("| unit of a call, s | threads | threads and device |")
print("|---|---|---|")
both = {who: load(f"call-{who}") for who in ("threads", "both")}
for unit in both["threads"][0]["units"]:
    times = [median(u["wall_s"] for run in both[who] for u in run["units"] if u["name"] == unit["name"]) for who in ("threads", "both")]
    print(f"| {unit['name']} | {times[0]:.1f} | {times[1]:.1f} |")
print(f"| whole, from gzip | {wall('call, threads'):.1f} | {wall('call, both'):.1f} |")
print(f"| joules of CPUs | {joules('call, threads', 2)} | {joules('call, both', 2)} |")
print(f"| joules of the device | {joules('call, threads', 3)} | {joules('call, both', 3)} |")
P
# Where the CPUs stop, if there is a profiler; by name in a binary of the profile `profiling`.
if command -v perf >/dev/null; then
  perf record -q -o "$out/perf.data" -g "$genuma" kmers count -k "$k" -t "$threads" --memory "${memory}G" --normal "${normal[@]}" -o "$out/x.tsv" --gpu "$device" >/dev/null 2>&1 &&
    perf report -i "$out/perf.data" --no-children --stdio -g none 2>/dev/null | grep -v '^#' | grep . | head -n 20
else
  echo "no profile: perf is not installed; the tables above say in which step time goes"
fi
