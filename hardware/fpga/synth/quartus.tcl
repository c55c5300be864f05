# UNTRIED: this file was never run, because Quartus is not free software.
#
# Place and route of the device alone, without pins, with Quartus Prime Pro: cells, clock, and paths that are too slow.
# Makes no file to program a card with; that needs the shell of a card around the device.
#
# usage: quartus_sh -t hardware/fpga/synth/quartus.tcl [PART] [LANES] [MHZ]
# Reports go to target/fpga/quartus. The default part is an Arria 10 GX 1150.
package require ::quartus::project
package require ::quartus::flow
set part 10AX115N3F40E2SG
set lanes 8
set mhz 200
foreach name {part lanes mhz} value $quartus(args) { if {$value ne ""} { set $name $value } }
set fpga [file dirname [file dirname [file normalize [info script]]]]
set out [file join [file dirname [file dirname $fpga]] target fpga quartus]
file mkdir $out
cd $out

set constraints [open scatter_device.sdc w]
puts $constraints "create_clock -name clk -period [expr {1000.0 / $mhz}] \[get_ports clk\]"
close $constraints

project_new scatter_device -overwrite
set_global_assignment -name DEVICE $part
set_global_assignment -name TOP_LEVEL_ENTITY scatter_device
set_global_assignment -name SDC_FILE scatter_device.sdc
foreach file [glob $fpga/rtl/*.sv] { set_global_assignment -name SYSTEMVERILOG_FILE $file }
set_parameter -name LANES $lanes
# The streams end in the shell, not at pins.
foreach port {rst sample* max_lines* in_* out_* flushed overflow} { set_instance_assignment -name VIRTUAL_PIN ON -to $port }
execute_flow -compile
project_close
