#!/usr/bin/env bash
# Places and routes eight lanes on an ECP5-85F (speed grade 6) and writes bench/results/fpga/place.tsv.
# usage: scripts/fpga.sh place
set -euo pipefail
work=$1
sources=("$2"/*.sv hardware/fpga/synth/pin_wrapper.sv)
lanes=${LANES:-8}
mkdir -p "$work"
"$YOSYS" -q -l "$work/yosys.log" -p "read_verilog -sv ${sources[*]}; chparam -set LANES $lanes pin_wrapper; synth_ecp5 -abc9 -top pin_wrapper -json $work/lanes$lanes.json"
"$NEXTPNR" --85k --package CABGA756 --speed 6 --freq 150 --seed "${SEED:-1}" --timing-allow-fail --json "$work/lanes$lanes.json" \
  --report "$work/report.json" --log "$work/nextpnr.log" -q
python3 hardware/fpga/synth/place_table.py "$lanes" "$work/report.json" | tee bench/results/fpga/place.tsv
