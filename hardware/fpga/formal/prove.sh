#!/usr/bin/env bash
# Proves the properties of the FPGA design with yosys and z3. usage: scripts/fpga.sh prove
#
# By induction, so for any time: the queues, the feed of bases, the room behind the feed, the streams of the device.
# The bin buffers are not proved, only simulated.
set -euo pipefail
work=$1
rtl=hardware/fpga/rtl
formal=hardware/fpga/formal
mkdir -p "$work"
for program in yosys yosys-smtbmc z3; do
  command -v "$program" >/dev/null || { echo "fpga: $program is missing: apt-get install yosys z3" >&2; exit 1; }
done

# compile NAME TOP PARAMETERS FILE ...
compile() {
  local name=$1 top=$2 parameters=$3
  shift 3
  yosys -q -l "$work/$name.log" -p "read_verilog -formal -sv $*; $parameters; prep -top $top -nordff; flatten; async2sync; opt -full; dffunmap; write_smt2 -wires $work/$name.smt2"
}

# check NAME OPTION ...
check() {
  local name=$1
  shift
  if ! yosys-smtbmc -s z3 --dump-vcd "$work/$name.vcd" "$@" "$work/$name.smt2" >"$work/$name.out" 2>&1; then
    tail -n 20 "$work/$name.out" >&2
    echo "fpga: $name is not proved, see $work/$name.out" >&2
    exit 1
  fi
}

# prove NAME STEPS: from reset and by induction
prove() {
  check "$1" -t "$2"
  check "$1" -i -t "$2"
  printf '%s\tproved\tunbounded, induction over %d cycles\n' "$1" "$2"
}

compile stream_fifo stream_fifo "chparam -set WIDTH 4 -set DEPTH 4 stream_fifo" $rtl/stream_fifo.sv
prove stream_fifo 4
compile base_feed base_feed "" $rtl/base_feed.sv
prove base_feed 3
compile scatter_lane scatter_lane "" $rtl/scatter_lane.sv $rtl/stream_fifo.sv $rtl/record_packer.sv $formal/free_stages.sv
prove scatter_lane 11
compile scatter_device scatter_device "chparam -set LANES 3 scatter_device" $rtl/scatter_device.sv $formal/free_lane.sv
prove scatter_device 3
