// Scatters reads with LANES lanes. Input and output are streams as in AXI4-Stream.
//
// Beat i of the input goes to lane i modulo LANES; the host distributes the reads. Each lane gets as many beats, the
// last one with the flag for the end of the batch. `in_data`: bases in bits 63:0, the mask of good bases in 95:64, the
// number of bases in 101:96, the end of a read in 102, the end of the batch in 103; the rest is unused.
//
// An output word is one line: a burst of 512 bits whose place in memory is given by lane, bin and offset. `flushed` is
// 1 when the batch is complete and all its lines have left; `overflow` then says whether a bin had more than
// `max_lines` lines. `sample` and `max_lines` must not change within a batch.
module scatter_device #(
    parameter int K = 31,
    parameter int M = 11,
    parameter int LANES = 8,
    parameter int BIN_BITS = 6
) (
    input  logic                clk,
    input  logic                rst,
    input  logic [2:0]          sample,
    input  logic [15:0]         max_lines,
    input  logic                in_valid,
    output logic                in_ready,
    input  logic [127:0]        in_data,
    output logic                out_valid,
    input  logic                out_ready,
    output logic [7:0]          out_lane,
    output logic [BIN_BITS-1:0] out_bin,
    output logic [15:0]         out_offset,
    output logic [6:0]          out_bytes,
    output logic [511:0]        out_data,
    output logic                flushed,
    output logic                overflow
);
    localparam int LANE_BITS = LANES > 1 ? $clog2(LANES) : 1;
    localparam int LINE = BIN_BITS + 16 + 7 + 512;
    logic [LANES-1:0] beat_ready, line_valid, lane_flushed, lane_overflow;
    logic [LINE*LANES-1:0] lines;

    // One beat waits here, so that no path leads from the source to a lane.
    logic beat_valid;
    logic [103:0] beat;
    logic [LANE_BITS-1:0] next_lane;
    wire taken = beat_valid && beat_ready[next_lane];
    assign in_ready = !beat_valid || taken;
    always_ff @(posedge clk) begin
        if (in_valid && in_ready) beat <= in_data[103:0];
        beat_valid <= (in_valid && in_ready) || (beat_valid && !taken);
        if (taken) next_lane <= next_lane == LANE_BITS'(LANES - 1) ? {LANE_BITS{1'b0}} : next_lane + 1'b1;
        if (rst) begin
            beat_valid <= 0;
            next_lane <= 0;
        end
    end

    // The lanes take turns: each cycle another one may hand over a line.
    logic [LANE_BITS-1:0] turn;
    wire out_free = !out_valid || out_ready;
    always_ff @(posedge clk) begin
        turn <= turn == LANE_BITS'(LANES - 1) ? {LANE_BITS{1'b0}} : turn + 1'b1;
        if (out_free) begin
            out_valid <= line_valid[turn];
            out_lane <= 8'(turn);
            {out_bin, out_offset, out_bytes, out_data} <= lines[turn*LINE +: LINE];
        end
        if (rst) begin
            turn <= 0;
            out_valid <= 0;
        end
    end
    assign flushed = &lane_flushed && !out_valid && !beat_valid;
    assign overflow = |lane_overflow;

    genvar lane;
    generate
        for (lane = 0; lane < LANES; lane++) begin : lanes
            scatter_lane #(.K(K), .M(M), .BIN_BITS(BIN_BITS)) u (
                .clk, .rst, .sample, .max_lines,
                .beat_valid(beat_valid && next_lane == LANE_BITS'(lane)), .beat_ready(beat_ready[lane]), .beat,
                .line_valid(line_valid[lane]),
                .line_ready(out_free && turn == LANE_BITS'(lane)),
                .line_bin(lines[lane*LINE+512+7+16 +: BIN_BITS]), .line_offset(lines[lane*LINE+512+7 +: 16]),
                .line_bytes(lines[lane*LINE+512 +: 7]), .line_data(lines[lane*LINE +: 512]),
                .flushed(lane_flushed[lane]), .overflow(lane_overflow[lane]));
        end
    endgenerate

`ifdef FORMAL
    // Lanes are replaced (formal/free_lane.sv) by ones that offer any lines and take any beats. Each line that a lane
    // hands over is the next one at the output; each beat that is taken is the next one of the lane whose turn it is.
    logic started = 0;
    logic [LANE_BITS-1:0] expected_lane;
    initial assume (rst);
    always_ff @(posedge clk) begin
        started <= 1;
        if (rst) expected_lane <= 0;
        else if (taken) expected_lane <= expected_lane == LANE_BITS'(LANES - 1) ? {LANE_BITS{1'b0}} : expected_lane + 1'b1;
        if (started && !rst && !$past(rst)) begin
            if ($past(out_valid && !out_ready))
                assert (out_valid && $stable({out_lane, out_bin, out_offset, out_bytes, out_data}));
            if ($past(out_free && line_valid[turn])) begin
                assert (out_valid && out_lane == $past(8'(turn)));
                assert ({out_bin, out_offset, out_bytes, out_data} == $past(lines[turn*LINE +: LINE]));
            end
            if ($past(out_free && !line_valid[turn])) assert (!out_valid);
            if ($past(in_valid && in_ready)) assert (beat_valid && beat == $past(in_data[103:0]));
            if ($past(beat_valid && !taken)) assert (beat_valid && $stable(beat) && $stable(next_lane));
            if ($past(taken && !in_valid)) assert (!beat_valid);
            assert (next_lane == expected_lane && next_lane < LANES && turn < LANES);
        end
    end
`endif
endmodule
