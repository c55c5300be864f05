// Turns beats into one base a cycle.
//
// A beat has up to 32 bases, the first in the highest bits of `beat_bases` and of `beat_good`. `beat_end_of_read` adds
// a gap after the last base, which ends super-k-mers. After the beat with `beat_end_of_batch` come DRAIN gaps, which
// push the last base through the pipeline behind. Then `drained` is 1 until a beat arrives and `flushed` is 1.
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
    output logic        base_valid,
    output logic        base_good,
    output logic [1:0]  base,
    input  logic        flushed,   // the bin buffers are empty: the next batch may begin
    output logic        drained
);
    localparam int BITS = $clog2(DRAIN + 1);
    logic [63:0] bases;
    logic [31:0] good;
    // Ticks left of the beat: its bases and the gap after them.
    logic [5:0] left;
    logic gap_last, end_of_batch, draining;
    logic [BITS-1:0] gaps;
    // The last tick of a beat, or none: the next beat may follow without a pause.
    wire last_tick = left <= 6'd1;
    assign beat_ready = !draining && !end_of_batch && (left == 0 || (last_tick && base_ready));
    assign base_valid = left != 0 || (draining && gaps != 0);
    assign base_good = left != 0 && good[31] && !(gap_last && left == 6'd1);
    assign base = bases[63:62];
    assign drained = draining && gaps == 0;
    always_ff @(posedge clk) begin
        if (base_valid && base_ready) begin
            if (left != 0) begin
                left <= left - 6'd1;
                bases <= {bases[61:0], 2'b00};
                good <= {good[30:0], 1'b0};
            end else gaps <= gaps - 1'b1;
        end
        if (end_of_batch && (left == 0 || (left == 6'd1 && base_ready))) begin
            end_of_batch <= 0;
            draining <= 1;
            gaps <= DRAIN[BITS-1:0];
        end
        if (beat_valid && beat_ready) begin
            bases <= beat_bases;
            good <= beat_good;
            left <= beat_count + {5'b0, beat_end_of_read};
            gap_last <= beat_end_of_read;
            end_of_batch <= beat_end_of_batch;
        end
        if (drained && flushed && beat_valid) draining <= 0;
        if (rst) begin
            left <= 0;
            gap_last <= 0;
            end_of_batch <= 0;
            draining <= 0;
            gaps <= 0;
        end
    end

`ifdef FORMAL
    // Each base of a beat leaves once and in order, followed by the gap of the end of a read.
    logic [63:0] taken_bases;
    logic [31:0] taken_good;
    logic [5:0] taken_count, sent;
    logic taken_gap;
    wire [5:0] ticks = taken_count + {5'b0, taken_gap};
    initial assume (rst);
    always_ff @(posedge clk) begin
        assume (beat_count <= 6'd32);
        if (beat_valid && beat_ready) begin
            taken_bases <= beat_bases;
            taken_good <= beat_good;
            taken_count <= beat_count;
            taken_gap <= beat_end_of_read;
            sent <= 0;
        end else if (left != 0 && base_ready) sent <= sent + 6'd1;
        if (rst) {taken_count, taken_gap, sent} <= 0;
        else begin
            assert (taken_count <= 6'd32 && sent <= ticks && left == ticks - sent && gap_last == taken_gap);
            if (left != 0 && sent <= 6'd31) assert (bases == taken_bases << {sent, 1'b0} && good == taken_good << sent);
            if (base_valid && left != 0) begin
                if (sent < taken_count) assert (base == taken_bases[6'd63 - {sent[4:0], 1'b0} -: 2]);
                assert (base_good == (sent < taken_count && taken_good[5'd31 - sent[4:0]]));
            end
            // A beat is taken only when the last tick of the one before leaves.
            if (beat_ready) assert (left == 0 || (left == 6'd1 && base_ready));
            assert (!(end_of_batch && draining) && (!draining || left == 0) && gaps <= DRAIN[BITS-1:0]);
            assert (!drained || !base_valid);
        end
    end
    logic started = 0;
    always_ff @(posedge clk) begin
        started <= 1;
        if (started && !rst && !$past(rst)) begin
            if ($past(base_valid && !base_ready)) assert (base_valid && $stable({base_good, base}));
            if ($past(drained && !flushed)) assert (drained);
        end
    end
`endif
endmodule
