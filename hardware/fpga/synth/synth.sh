#!/usr/bin/env bash
# Synthesizes the device with one lane and counts its cells; gives no clock. usage: scripts/fpga.sh synth [check]
#
# Without `check`: for three families of FPGAs, and writes bench/results/fpga/synth.tsv. With `check`: for the ECP5, and
# compares with that table. Exit status of `check`: 1 if a number differs by more than 5 %, 3 if the table has no
# numbers of this version of yosys, because another version makes other cells.
set -euo pipefail
work=$1
rtl=$2
mode=${3:-}
table=bench/results/fpga/synth.tsv
lanes=1
case $mode in '' | check) ;; *) echo "usage: scripts/fpga.sh synth [check]" >&2; exit 2 ;; esac
mkdir -p "$work"

# synthesize FAMILY [OPTION ...]: writes the numbers of cells to FAMILY.json
synthesize() {
  local family=$1
  shift
  "$YOSYS" -q -l "$work/$family.log" -p "read_verilog -sv $rtl/*.sv; chparam -set LANES $lanes scatter_device; synth_$family $* -top scatter_device; tee -q -o $work/$family.json stat -json"
}

synthesize ecp5 -abc9
if [ "$mode" = check ]; then
  exec python3 hardware/fpga/synth/cell_table.py compare "$table" ecp5 $lanes "$work/ecp5.json"
fi
synthesize xilinx -family xcup -flatten
synthesize intel_alm -family cyclone10gx
python3 hardware/fpga/synth/cell_table.py write "$lanes" "$work"/{ecp5,xilinx,intel_alm}.json >"$work/synth.tsv"
cp "$work/synth.tsv" "$table"
cat "$table"
