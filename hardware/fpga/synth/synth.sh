#!/usr/bin/env bash
# Synthesizes the device with LANES lanes (default 1) for several FPGAs and writes bench/results/fpga/synth.tsv: the
# cells, no clock. usage: scripts/fpga.sh synth
set -euo pipefail
work=$1
lanes=${LANES:-1}
mkdir -p "$work"
table=bench/results/fpga/synth.tsv
printf 'family\tlanes\tcell\tnumber\n' >"$work/synth.tsv"
for family in "xilinx -family xcup -flatten" "intel_alm -family cyclone10gx"; do
  name=${family%% *}
  "$YOSYS" -q -l "$work/$name.log" -p "read_verilog -sv hardware/fpga/rtl/*.sv; chparam -set LANES $lanes scatter_device; synth_$family -top scatter_device; tee -q -o $work/$name.stat stat"
  awk -v family="$name" -v lanes="$lanes" 'NF == 2 && $1 ~ /^[A-Z]|^\$/ && $2 ~ /^[0-9]+$/ { print family "\t" lanes "\t" $1 "\t" $2 }' "$work/$name.stat" >>"$work/synth.tsv"
done
cp "$work/synth.tsv" "$table"
cat "$table"
