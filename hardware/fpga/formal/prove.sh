#!/usr/bin/env bash
# Proves the properties of the FPGA design with yosys and z3. usage: scripts/fpga.sh prove [full]
#
# By induction, so for any time: the queues, the feed of bases, the packer, the room behind the feed, the bin buffers,
# the streams of the device. The cutter is not proved, only simulated. The bin buffers are small (two bins, lines of
# four bytes); with `full` also those of two bins whose lines, frames and offsets have the sizes of the design.
# Then defects are put into the bin buffers one at a time, and each must give a counterexample.
set -euo pipefail
work=$1
full=${2:-}
rtl=hardware/fpga/rtl
formal=hardware/fpga/formal
mkdir -p "$work"
for program in yosys yosys-smtbmc yosys-abc z3; do
  command -v "$program" >/dev/null || { echo "fpga: $program is missing: apt-get install yosys z3" >&2; exit 1; }
done
case $full in '' | full) ;; *) echo "usage: scripts/fpga.sh prove [full]" >&2; exit 2 ;; esac

# compile NAME TOP PARAMETERS FILE ...
compile() {
  local name=$1 top=$2 parameters=$3
  shift 3
  yosys -q -w "Replacing memory" -l "$work/$name.log" -p "read_verilog -formal -sv $*; $parameters; prep -top $top -nordff; flatten; async2sync; opt -full; dffunmap; write_smt2 -wires $work/$name.smt2"
}

# check NAME OPTION ...
check() {
  local name=$1
  shift
  if ! yosys-smtbmc -s z3 --noprogress --dump-vcd "$work/$name.vcd" "$@" "$work/$name.smt2" >"$work/$name.out" 2>&1; then
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

# The bin buffers are proved bit by bit: z3 took hours for their memories.
small="-set BIN_BITS 1 -set WORD_BYTES 2 -set LINE_WORDS 2 -set FRAME_BYTES 3 -set LENGTH_BITS 2 -set OFFSET_BITS 2"

# buffer_gates FILE PARAMETERS OPTIONS: the commands that turn the buffers into gates
buffer_gates() {
  echo "read_verilog -formal -sv -I$formal $3 $1; chparam $2 bin_buffers; prep -top bin_buffers -nordff; flatten; memory_map; delete -port o:*; async2sync; opt -full; techmap; opt -full"
}

# prove_buffers NAME PARAMETERS
prove_buffers() {
  if ! yosys -Q -T -p "$(buffer_gates $rtl/bin_buffers.sv "$2" ""); sat -verify -tempinduct -prove-asserts -set-assumes -seq 1 -maxsteps 4 -show-all -dump_vcd $work/$1.vcd bin_buffers" >"$work/$1.out" 2>&1 ||
    ! grep -q '^Induction step proven: SUCCESS' "$work/$1.out"; then
    grep -E 'Solving problem|proof finished' "$work/$1.out" >&2
    echo "fpga: $1 is not proved, see $work/$1.out and $work/$1.vcd" >&2
    exit 1
  fi
  printf '%s\tproved\tunbounded, induction over %d cycles\n' "$1" "$(grep -c '^\[induction step' "$work/$1.out")"
}

# refute NAME FILE OPTIONS: finds a counterexample within 30 cycles after reset
refute() {
  yosys -q -w "Replacing memory" -l "$work/$1.log" -p "$(buffer_gates "$2" "$small" "$3"); simplemap; dffunmap; abc -g AND -fast; opt_clean; write_aiger -B -zinit $work/$1.aig"
  yosys-abc -c "read_aiger $work/$1.aig; fold; scorr; bmc3 -F 30" >"$work/$1.out" 2>&1
  local cycle
  cycle=$(sed -n 's/.*was asserted in frame \([0-9]*\)\..*/\1/p' "$work/$1.out")
  if [ -z "$cycle" ]; then
    echo "fpga: no counterexample for $1, see $work/$1.out" >&2
    exit 1
  fi
  printf '%s\trefuted\tcounterexample of %d cycles\n' "$1" "$cycle"
}

# refute_defect NAME SED: the buffers with a defect
refute_defect() {
  sed "$2" $rtl/bin_buffers.sv >"$work/$1.sv"
  if cmp -s $rtl/bin_buffers.sv "$work/$1.sv"; then
    echo "fpga: the defect $1 changes nothing: update it in $formal/prove.sh" >&2
    exit 1
  fi
  refute "$1" "$work/$1.sv" ""
}

compile stream_fifo stream_fifo "chparam -set WIDTH 4 -set DEPTH 4 stream_fifo" $rtl/stream_fifo.sv
prove stream_fifo 4
compile base_feed base_feed "" $rtl/base_feed.sv
prove base_feed 3
compile record_packer record_packer "" $rtl/record_packer.sv
prove record_packer 8
compile scatter_lane scatter_lane "" $rtl/scatter_lane.sv $rtl/stream_fifo.sv $rtl/record_packer.sv $formal/free_stages.sv
prove scatter_lane 12
compile scatter_device scatter_device "chparam -set LANES 3 scatter_device" $rtl/scatter_device.sv $formal/free_lane.sv
prove scatter_device 3
prove_buffers bin_buffers "$small"
[ -z "$full" ] || prove_buffers bin_buffers_full "-set BIN_BITS 1"

refute batches_never_complete $rtl/bin_buffers.sv -DNEVER_COMPLETE
refute batches_never_overflow $rtl/bin_buffers.sv -DNEVER_OVERFLOWS
refute_defect copier_not_awaited 's/ && !copier_free);/);/; s/line_full && room)/0)/'
refute_defect overflow_of_last_line_hidden 's/if (!room && fill\[W+L-1:0\] != 0) overflow <= 1;//'
refute_defect offset_not_counted "s/offset <= offset + 1'b1/offset <= offset/"
refute_defect carry_lost 's/carry <= shifted\[2\*WORD-1:WORD\]/carry <= 0/'
refute_defect last_word_not_written 's/ || (start_copy && state == CLOSE)//'
refute_defect bin_not_emptied 's/(append && !word_full) || close;/(append \&\& !word_full);/'
refute_defect wrong_line_copied 's/copy_line <= {fill\[FILL_BITS-1\]/copy_line <= {~fill[FILL_BITS-1]/'
