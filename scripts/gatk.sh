#!/usr/bin/env bash
# Runs GATK, fetching it at the first call: scripts/gatk.sh ValidateVariants -V calls.vcf.gz -R ref.fa
#
# GATK_MEMORY: the heap's limit, 4g unless given. GENUMA_CACHE: where GATK is kept (bench/peers.sh).
set -euo pipefail
libraries=$("$(dirname "$0")/../bench/peers.sh" --gatk-only)
options=()
case ${1:-} in
  # Tools of seconds: the optimising compiler and parallel garbage collection would take more than half of the CPU time.
  Validate* | CreateSequenceDictionary) options=(-XX:TieredStopAtLevel=1 -XX:+UseSerialGC) ;;
esac
exec java "${options[@]}" -Xmx"${GATK_MEMORY:-4g}" -Djava.awt.headless=true -cp "$libraries/*" org.broadinstitute.hellbender.Main "$@"
