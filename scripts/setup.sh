#!/usr/bin/env bash
# Installs what genuma needs on Debian or Ubuntu, and says nothing when all of it is there.
#
# usage: scripts/setup.sh build|lint|test|bench|docs|dist|fpga ...
set -euo pipefail

# rustc links with cc, and three crates have C or assembly: mimalloc, libdeflate, ring. make runs the targets.
build=(gcc libc6-dev make)
# What the checks of constants and of the guide run in.
lint=(python3)
# The tools that judge our files: VCF, BAM, k-mer counts, and the report in a browser; bzip2 unpacks test data.
# QEMU and what fills its guests (scripts/numavm.sh): machines of several nodes to place memory on.
test=(bwa bowtie2 minimap2 snap-aligner bcftools samtools tabix chromium bzip2 kmc jellyfish qemu-system-x86 busybox-static cpio zstd numactl)
# A device for OpenCL that is the CPUs, and what finds drivers.
test+=(pocl-opencl-icd ocl-icd-libopencl1)
# The simulated FPGA (scripts/fpga.sh), whose model is C++; the proofs and the synthesis of its design.
test+=(g++ verilator yosys z3)
# The Fortran example of the placement library.
test+=(gfortran)
fpga=(build-essential verilator yosys z3)
# Slurm, and what scripts/nextflow.sh and scripts/snakemake.sh need: calls in parts on a cluster of this machine (scripts/slurm.sh).
test+=(slurmctld slurmd slurm-client openjdk-17-jre-headless maven python3-venv procps)
# What `make dist` is made and tried with: processors of another kind are QEMU's.
dist=(python3-venv qemu-user-static skopeo)
# The book of the documentation.
docs=(python3-venv)
# The peers we are measured against; GATK itself comes from Maven Central (bench/peers.sh).
bench=(bwa minimap2 bowtie2 snap-aligner samtools bcftools tabix delly freebayes openjdk-17-jre-headless maven time fio librocksdb-dev isal)

if [ $# -eq 0 ]; then
  echo "usage: scripts/setup.sh build|lint|test|bench|docs|dist|fpga ..." >&2
  exit 2
fi
wanted=()
for part in "$@"; do
  case $part in
    build) wanted+=("${build[@]}") ;;
    lint) wanted+=("${lint[@]}") ;;
    test) wanted+=("${test[@]}") ;;
    bench) wanted+=("${bench[@]}") ;;
    docs) wanted+=("${docs[@]}") ;;
    dist) wanted+=("${dist[@]}") ;;
    fpga) wanted+=("${fpga[@]}") ;;
    *)
      echo "setup: no part '$part': say build, lint, test, bench, docs, dist or fpga" >&2
      exit 2
      ;;
  esac
done

installed() {
  dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null | grep -q '^installed$'
}

missing=()
for package in "${wanted[@]}"; do
  installed "$package" || missing+=("$package")
done

if [ ${#missing[@]} -gt 0 ]; then
  if ! command -v apt-get >/dev/null; then
    echo "setup: this is no Debian system: install the equivalents of ${missing[*]} by hand" >&2
    exit 1
  fi
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "setup: needs root to install ${missing[*]}: run 'apt-get install ${missing[*]}' as root" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  echo "setup: installing ${missing[*]}" >&2
  log=$(mktemp)
  apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@" >>"$log" 2>&1; }
  if ! { apt update && apt install -y --no-install-recommends "${missing[@]}"; }; then
    tail -n 20 "$log" >&2
    echo "setup: apt-get failed, the whole log is in $log" >&2
    exit 1
  fi
  rm -f "$log"
fi

if ! command -v cargo >/dev/null; then
  echo "setup: no cargo: install Rust 1.91 or newer with rustup (https://rustup.rs); Debian's rustc is too old" >&2
  exit 1
fi
