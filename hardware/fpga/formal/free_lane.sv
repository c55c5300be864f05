// A lane that offers any lines and takes any beats, for the proof of scatter_device.
module scatter_lane #(
    parameter int K = 31,
    parameter int M = 11,
    parameter int BIN_BITS = 6
) (
    input  logic                clk,
    input  logic                rst,
    input  logic [2:0]          sample,
    input  logic [15:0]         max_lines,
    input  logic                beat_valid,
    output logic                beat_ready,
    input  logic [103:0]        beat,
    output logic                line_valid,
    input  logic                line_ready,
    output logic [BIN_BITS-1:0] line_bin,
    output logic [15:0]         line_offset,
    output logic [6:0]          line_bytes,
    output logic [511:0]        line_data,
    output logic                flushed,
    output logic                overflow
);
    (* anyseq *) logic any_ready, any_valid, any_flushed, any_overflow;
    (* anyseq *) logic [BIN_BITS+16+7+512-1:0] any_line;
    assign beat_ready = any_ready;
    assign line_valid = any_valid;
    assign {line_bin, line_offset, line_bytes, line_data} = any_line;
    assign flushed = any_flushed;
    assign overflow = any_overflow;
endmodule
