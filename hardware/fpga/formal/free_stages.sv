// A feed, a cutter and buffers that do anything their interfaces allow, for the proof of the queue of scatter_lane.
module base_feed #(
    parameter int DRAIN = 16
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        beat_valid,
    output logic        beat_ready,
    input  logic [63:0] beat_bases,
    input  logic [31:0] beat_good,
    input  logic [5:0]  beat_count,
    input  logic        beat_end_of_read,
    input  logic        beat_end_of_batch,
    input  logic        base_ready,
    input  logic        flushed,
    output logic        base_valid,
    output logic        base_good,
    output logic [1:0]  base,
    output logic        drained
);
    (* anyseq *) logic [5:0] any;
    assign {beat_ready, base_valid, base_good, base, drained} = any;
    // As proved of base_feed.
    logic started = 0;
    always_ff @(posedge clk) begin
        started <= 1;
        assume (!drained || !base_valid);
        if (started && !rst && !$past(rst) && $past(drained && !flushed)) assume (drained);
    end
endmodule

module super_kmer_cutter #(
    parameter int K = 31,
    parameter int M = 11
) (
    input  logic                clk,
    input  logic                rst,
    input  logic                tick,
    input  logic                good,
    input  logic [1:0]          base,
    output logic                record_valid,
    output logic [4:0]          record_kmers,
    output logic [31:0]         record_minimizer,
    output logic [2*(K+31)-1:0] record_bases
);
    (* anyseq *) logic any;
    (* anyseq *) logic [36:0] any_record;
    assign {record_kmers, record_minimizer} = any_record;
    assign record_bases = 0;
    // At most one record a tick.
    always_ff @(posedge clk) record_valid <= tick && any && !rst;
endmodule

module bin_buffers #(
    parameter int BIN_BITS = 6,
    parameter int OFFSET_BITS = 16
) (
    input  logic                clk,
    input  logic                rst,
    input  logic [15:0]         max_lines,
    input  logic                drained,
    output logic                flushed,
    output logic                overflow,
    input  logic                frame_valid,
    output logic                frame_ready,
    input  logic [167:0]        frame,
    input  logic [4:0]          frame_bytes,
    input  logic [BIN_BITS-1:0] frame_bin,
    output logic                line_valid,
    input  logic                line_ready,
    output logic [BIN_BITS-1:0] line_bin,
    output logic [15:0]         line_offset,
    output logic [6:0]          line_bytes,
    output logic [511:0]        line_data
);
    (* anyseq *) logic [3:0] any;
    assign {flushed, overflow, frame_ready, line_valid} = any;
    assign {line_bin, line_offset, line_bytes, line_data} = 0;
endmodule
