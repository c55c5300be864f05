# UNTRIED: this file was never run, because Vivado is not free software.
#
# Place and route of the device alone, without pins, with Vivado: cells, clock, and paths that are too slow. Makes no
# bitstream; that needs the shell of a card around the device.
#
# usage: vivado -mode batch -source hardware/fpga/synth/vivado.tcl -tclargs [PART] [LANES] [MHZ]
# Reports go to target/fpga/vivado. The default part is that of an Alveo U50.
set part xcu50-fsvh2104-2-e
set lanes 8
set mhz 200
foreach name {part lanes mhz} value $argv { if {$value ne ""} { set $name $value } }
set fpga [file dirname [file dirname [file normalize [info script]]]]
set out [file join [file dirname [file dirname $fpga]] target fpga vivado]
file mkdir $out

read_verilog -sv [glob $fpga/rtl/*.sv]
synth_design -top scatter_device -part $part -mode out_of_context -generic LANES=$lanes
create_clock -name clk -period [expr {1000.0 / $mhz}] [get_ports clk]
opt_design
place_design
phys_opt_design
route_design
report_utilization -file $out/utilization.rpt
report_timing_summary -max_paths 10 -file $out/timing.rpt
write_checkpoint -force $out/scatter_device.dcp
