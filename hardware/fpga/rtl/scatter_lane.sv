// One lane of scatter: beats of reads in, lines of frames by device bin out. One base a cycle.
//
// Only the feed of bases waits: it stops while the queue of frames has no room for what is on its way.
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
    input  logic [103:0]        beat,   // flags and number of bases (8 bits), mask (32), bases (64)
    output logic                line_valid,
    input  logic                line_ready,
    output logic [BIN_BITS-1:0] line_bin,
    output logic [15:0]         line_offset,
    output logic [6:0]          line_bytes,
    output logic [511:0]        line_data,
    output logic                flushed,
    output logic                overflow
);
    localparam int FRAMES = 16;     // of the queue
    localparam int IN_FLIGHT = 7;   // frames behind the feed: cutter, packer, and the register `room`
    logic queued_valid, queued_ready;
    logic [103:0] queued;
    stream_fifo #(.WIDTH(104), .DEPTH(4)) beats (
        .clk, .rst, .in_valid(beat_valid), .in_ready(beat_ready), .in_data(beat),
        .out_valid(queued_valid), .out_ready(queued_ready), .out_data(queued), .level());

    logic base_valid, base_good, fed, buffers_flushed;
    assign flushed = buffers_flushed && !queued_valid;
    logic [1:0] base;
    logic room;
    wire tick = base_valid && room;
    base_feed feed (
        .clk, .rst, .beat_valid(queued_valid), .beat_ready(queued_ready),
        .beat_bases(queued[63:0]), .beat_good(queued[95:64]), .beat_count(queued[101:96]),
        .beat_end_of_read(queued[102]), .beat_end_of_batch(queued[103]),
        .base_ready(room), .base_valid, .base_good, .base, .flushed(buffers_flushed), .drained(fed));

    logic record_valid;
    logic [4:0] record_kmers;
    logic [31:0] record_minimizer;
    logic [2*(K+31)-1:0] record_bases;
    super_kmer_cutter #(.K(K), .M(M)) cutter (
        .clk, .rst, .tick, .good(base_good), .base,
        .record_valid, .record_kmers, .record_minimizer, .record_bases);

    logic frame_valid;
    logic [167:0] frame;
    logic [4:0] frame_bytes;
    logic [BIN_BITS-1:0] frame_bin;
    record_packer #(.K(K), .BIN_BITS(BIN_BITS)) packer (
        .clk, .rst, .sample, .record_valid, .record_kmers, .record_minimizer, .record_bases,
        .frame_valid, .frame, .frame_bytes, .frame_bin);

    logic next_valid, next_ready, frame_ready;
    logic [$clog2(FRAMES):0] queued_frames;
    logic [172+BIN_BITS:0] next;
    stream_fifo #(.WIDTH(173 + BIN_BITS), .DEPTH(FRAMES)) frames (
        .clk, .rst, .in_valid(frame_valid), .in_ready(frame_ready), .in_data({frame_bin, frame_bytes, frame}),
        .out_valid(next_valid), .out_ready(next_ready), .out_data(next), .level(queued_frames));
    // Eight cycles after the last tick every frame is in the queue.
    logic [7:0] fed_before;
    always_ff @(posedge clk) begin
        room <= queued_frames < 5'(FRAMES - IN_FLIGHT);
        fed_before <= fed ? {fed_before[6:0], 1'b1} : 8'b0;
        if (rst) begin
            room <= 0;
            fed_before <= 0;
        end
    end

    wire drained = fed && fed_before[7] && !next_valid;
    bin_buffers #(.BIN_BITS(BIN_BITS)) buffers (
        .clk, .rst, .max_lines, .drained,
        .flushed(buffers_flushed), .overflow,
        .frame_valid(next_valid), .frame_ready(next_ready),
        .frame(next[167:0]), .frame_bytes(next[172:168]), .frame_bin(next[172+BIN_BITS:173]),
        .line_valid, .line_ready, .line_bin, .line_offset, .line_bytes, .line_data);

`ifdef FORMAL
    // The queue has room for every frame that arrives, though nothing behind the feed can wait. What the proof of
    // bin_buffers takes for granted: when the input has ended no frame follows until all lines have left.
    logic started = 0;
    initial assume (rst);
    always_ff @(posedge clk) begin
        started <= 1;
        if (!rst && frame_valid) assert (frame_ready);
        if (started && !rst && !$past(rst) && $past(drained && !buffers_flushed)) assert (drained && !next_valid);
    end
`endif
endmodule
