#!/usr/bin/env bash
# Proves the properties of the FPGA design with yosys and z3. usage: scripts/fpga.sh prove [full] [MODULE ...]
#
# By induction, so for any time: the queues, the feed of bases, the packer, the room behind the feed, the bin buffers,
# the streams of the device. The cutter is not proved, only simulated. The bin buffers are small (two bins, lines of
# four bytes); with `full` also those of two bins whose lines, frames and offsets have the sizes of the design.
# Then defects are put into a copy of each module one at a time, and each must give a counterexample.
# Prints a line for each proof and each counterexample: module, result, details. With MODULE: only these modules.
set -euo pipefail
work=$1
rtl=$2
shift 2
formal=hardware/fpga/formal
all=(stream_fifo base_feed record_packer scatter_lane scatter_device bin_buffers)
full=
modules=()
for argument in "$@"; do
  if [ "$argument" = full ]; then
    full=full
  elif [[ " ${all[*]} " == *" $argument "* ]]; then
    modules+=("$argument")
  else
    echo "fpga: no module '$argument' with a proof: say ${all[*]}, or full" >&2
    exit 2
  fi
done
[ ${#modules[@]} -gt 0 ] || modules=("${all[@]}")
mkdir -p "$work"
for program in yosys yosys-smtbmc yosys-abc z3; do
  command -v "$program" >/dev/null || { echo "fpga: $program is missing: apt-get install yosys z3" >&2; exit 1; }
done

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
  yosys-smtbmc -s z3 --noprogress --dump-vcd "$work/$name.vcd" "$@" "$work/$name.smt2" >"$work/$name.out" 2>&1
}

# prove MODULE STEPS: from reset and by induction
prove() {
  if ! { check "$1" -t "$2" && check "$1" -i -t "$2"; }; then
    tail -n 20 "$work/$1.out" >&2
    echo "fpga: $1 is not proved, see $work/$1.out" >&2
    exit 1
  fi
  printf '%s\tproved\tunbounded, induction over %d cycles\n' "$1" "$2"
}

# put_defect MODULE DEFECT SED: writes a copy of the module with a defect
put_defect() {
  sed "$3" "$rtl/$1.sv" >"$work/$2.sv"
  if cmp -s "$rtl/$1.sv" "$work/$2.sv"; then
    echo "fpga: the defect $2 changes nothing in $1: update it in $formal/prove.sh" >&2
    exit 1
  fi
}

# report_refuted MODULE DEFECT CYCLE: CYCLE is empty without a counterexample
report_refuted() {
  if [ -z "$3" ]; then
    echo "fpga: no counterexample for $2 in $1, see $work/$2.out" >&2
    exit 1
  fi
  printf '%s\trefuted\t%s, counterexample of %d cycles\n' "$1" "$2" "$3"
}

# refute_defect MODULE DEFECT SED STEPS PARAMETERS FILE ...: FILE: further files that the module needs
refute_defect() {
  local module=$1 defect=$2 steps=$4 parameters=$5
  put_defect "$module" "$defect" "$3"
  shift 5
  compile "$defect" "$module" "$parameters" "$work/$defect.sv" "$@"
  local cycle=
  # Only a failed assertion is a counterexample, not an error of a program.
  if ! check "$defect" -t "$steps" && grep -q "Assert failed in $module:" "$work/$defect.out"; then
    cycle=$(sed -n 's/.*Checking assertions in step \([0-9]*\)\.\..*/\1/p' "$work/$defect.out" | tail -n 1)
  fi
  report_refuted "$module" "$defect" "$cycle"
}

# The bin buffers are proved bit by bit: z3 took hours for their memories.
small="-set BIN_BITS 1 -set WORD_BYTES 2 -set LINE_WORDS 2 -set FRAME_BYTES 3 -set LENGTH_BITS 2 -set OFFSET_BITS 2"

# buffer_gates FILE PARAMETERS OPTIONS: the commands that turn the buffers into gates
buffer_gates() {
  echo "read_verilog -formal -sv -I$formal $3 $1; chparam $2 bin_buffers; prep -top bin_buffers -nordff; flatten; memory_map; delete -port o:*; async2sync; opt -full; techmap; opt -full"
}

# prove_buffers PARAMETERS SIZE
prove_buffers() {
  local name=bin_buffers_$2
  if ! yosys -Q -T -p "$(buffer_gates "$rtl/bin_buffers.sv" "$1" ""); sat -verify -tempinduct -prove-asserts -set-assumes -seq 1 -maxsteps 4 -show-all -dump_vcd $work/$name.vcd bin_buffers" >"$work/$name.out" 2>&1 ||
    ! grep -q '^Induction step proven: SUCCESS' "$work/$name.out"; then
    grep -E 'Solving problem|proof finished' "$work/$name.out" >&2
    echo "fpga: bin_buffers is not proved, see $work/$name.out and $work/$name.vcd" >&2
    exit 1
  fi
  printf 'bin_buffers\tproved\tunbounded, induction over %d cycles, %s\n' "$(grep -c '^\[induction step' "$work/$name.out")" "$2"
}

# refute_buffers CLAIM FILE OPTIONS: finds a counterexample within 30 cycles after reset
refute_buffers() {
  yosys -q -w "Replacing memory" -l "$work/$1.log" -p "$(buffer_gates "$2" "$small" "$3"); simplemap; dffunmap; abc -g AND -fast; opt_clean; write_aiger -B -zinit $work/$1.aig"
  yosys-abc -c "read_aiger $work/$1.aig; fold; scorr; bmc3 -F 30" >"$work/$1.out" 2>&1
  report_refuted bin_buffers "$1" "$(sed -n 's/.*was asserted in frame \([0-9]*\)\..*/\1/p' "$work/$1.out")"
}

# refute_buffers_defect DEFECT SED
refute_buffers_defect() {
  put_defect bin_buffers "$1" "$2"
  refute_buffers "$1" "$work/$1.sv" ""
}

for module in "${modules[@]}"; do
  case $module in
    stream_fifo)
      four="chparam -set WIDTH 4 -set DEPTH 4 stream_fifo"
      compile stream_fifo stream_fifo "$four" "$rtl/stream_fifo.sv"
      prove stream_fifo 4
      refute_defect stream_fifo full_queue_takes_a_word "s/in_ready = level != .*;/in_ready = 1'b1;/" 8 "$four"
      ;;
    base_feed)
      compile base_feed base_feed "" "$rtl/base_feed.sv"
      prove base_feed 3
      refute_defect base_feed gap_of_read_missing "s/ && !(gap_last && left == 6'd1)//" 6 ""
      ;;
    record_packer)
      compile record_packer record_packer "" "$rtl/record_packer.sv"
      prove record_packer 8
      refute_defect record_packer bases_not_aligned 's/{~kmers1\[2:0\]/{kmers1[2:0]/' 8 ""
      ;;
    scatter_lane)
      stages=("$rtl/stream_fifo.sv" "$rtl/record_packer.sv" $formal/free_stages.sv)
      compile scatter_lane scatter_lane "" "$rtl/scatter_lane.sv" "${stages[@]}"
      prove scatter_lane 12
      refute_defect scatter_lane last_frames_not_awaited 's/fed && fed_before\[7\]/fed/' 12 "" "${stages[@]}"
      ;;
    scatter_device)
      three="chparam -set LANES 3 scatter_device"
      compile scatter_device scatter_device "$three" "$rtl/scatter_device.sv" $formal/free_lane.sv
      prove scatter_device 3
      refute_defect scatter_device waiting_beat_lost 's/ || (beat_valid && !taken)//' 5 "$three" $formal/free_lane.sv
      ;;
    bin_buffers)
      prove_buffers "$small" small
      [ -z "$full" ] || prove_buffers "-set BIN_BITS 1" full
      refute_buffers batches_never_complete "$rtl/bin_buffers.sv" -DNEVER_COMPLETE
      refute_buffers batches_never_overflow "$rtl/bin_buffers.sv" -DNEVER_OVERFLOWS
      refute_buffers_defect copier_not_awaited 's/ && !copier_free);/);/; s/line_full && room)/0)/'
      refute_buffers_defect overflow_of_last_line_hidden 's/if (!room && fill\[W+L-1:0\] != 0) overflow <= 1;//'
      refute_buffers_defect offset_not_counted "s/offset <= offset + 1'b1/offset <= offset/"
      refute_buffers_defect carry_lost 's/carry <= shifted\[2\*WORD-1:WORD\]/carry <= 0/'
      refute_buffers_defect last_word_not_written 's/ || (start_copy && state == CLOSE)//'
      refute_buffers_defect bin_not_emptied 's/(append && !word_full) || close;/(append \&\& !word_full);/'
      refute_buffers_defect wrong_line_copied 's/copy_line <= {fill\[FILL_BITS-1\]/copy_line <= {~fill[FILL_BITS-1]/'
      ;;
  esac
done
