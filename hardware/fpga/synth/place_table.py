#!/usr/bin/env python3
"""Prints the table of a place and route: cells of an ECP5-85F, MHz, Gbases/s. usage: place_table.py LANES REPORT"""
import json
import sys

# Ticks a base: a read of 150 bases has one gap. Measured by `scripts/fpga.sh measure`: 1.0071 with the end of the batch.
CYCLES_PER_BASE_AND_LANE = 151 / 150

lanes, path = int(sys.argv[1]), sys.argv[2]
with open(path, encoding="utf-8") as file:
    report = json.load(file)
(clock,) = report["fmax"].values()
mhz = clock["achieved"]
print("quantity\tused\tavailable\tshare")
for cell in ("TRELLIS_COMB", "TRELLIS_FF", "TRELLIS_RAMW", "DP16KD", "MULT18X18D"):
    used, available = (report["utilization"][cell][key] for key in ("used", "available"))
    print(f"{cell}\t{used}\t{available}\t{used / available:.3f}")
print(f"lanes\t{lanes}\t\t")
print(f"mhz\t{mhz:.1f}\t\t")
print(f"gbases_per_s\t{lanes * mhz / 1000 / CYCLES_PER_BASE_AND_LANE:.3f}\t\t")
