// Collects frames by device bin on the chip and writes them in whole lines.
//
// Each bin has a buffer of two lines; the bytes of its frames follow one another without gaps. A full line leaves with
// its bin and its offset, which counts the lines of the bin in this batch. When the input has ended (`drained`), the
// rest of each bin leaves as a line of fewer bytes, and `flushed` is 1 until `drained` is 0. A bin may have
// `max_lines` lines: more are dropped and `overflow` stays 1 until the next batch, which the host must then repeat.
// A frame waits while a line of an earlier one is copied out of its buffer.
module bin_buffers #(
    parameter int BIN_BITS = 6,
    parameter int WORD_BYTES = 8,   // a power of two
    parameter int LINE_WORDS = 8,   // a power of two
    parameter int FRAME_BYTES = 21, // at most a line less a word
    parameter int LENGTH_BITS = 5,
    parameter int OFFSET_BITS = 16
) (
    input  logic                              clk,
    input  logic                              rst,
    input  logic [OFFSET_BITS-1:0]            max_lines,
    input  logic                              drained,
    output logic                              flushed,
    output logic                              overflow,
    input  logic                              frame_valid,
    output logic                              frame_ready,
    input  logic [8*FRAME_BYTES-1:0]          frame,
    input  logic [LENGTH_BITS-1:0]            frame_bytes,
    input  logic [BIN_BITS-1:0]               frame_bin,
    output logic                              line_valid,
    input  logic                              line_ready,
    output logic [BIN_BITS-1:0]               line_bin,
    output logic [OFFSET_BITS-1:0]            line_offset,
    output logic [$clog2(WORD_BYTES*LINE_WORDS):0] line_bytes,
    output logic [8*WORD_BYTES*LINE_WORDS-1:0] line_data
);
    localparam int WORD = 8 * WORD_BYTES;
    localparam int W = $clog2(WORD_BYTES);
    localparam int L = $clog2(LINE_WORDS);
    localparam int FILL_BITS = W + L + 1;  // bytes in both lines
    localparam int FRAME_WORDS = (FRAME_BYTES + WORD_BYTES - 1) / WORD_BYTES;
    localparam int TODO_BITS = LENGTH_BITS + 1;
    localparam int META = OFFSET_BITS + FILL_BITS;

    localparam logic [2:0] CLEAR = 0, IDLE = 1, LOAD = 2, APPEND = 3, READ = 4, REST = 5, CLOSE = 6, DONE = 7;
    logic [2:0] state;

    // Full words of all buffers; the word being filled, and the state of each buffer.
    logic [WORD-1:0] words[0:(1 << (BIN_BITS + L + 1)) - 1];
    logic [WORD-1:0] partials[0:(1 << BIN_BITS) - 1];
    logic [META-1:0] metas[0:(1 << BIN_BITS) - 1];

    logic [BIN_BITS-1:0] bin;
    logic [WORD*FRAME_WORDS-1:0] rest;
    logic [LENGTH_BITS-1:0] length;
    logic [OFFSET_BITS-1:0] offset;
    logic [FILL_BITS-1:0] fill;
    logic [WORD-1:0] carry;
    logic [W-1:0] shift;
    logic [TODO_BITS-1:0] todo;  // bytes of the carry and of the rest

    // Copying of a line from its buffer.
    logic copying;
    logic [L:0] copied;
    logic [L:0] copy_line;  // word address of its first word, without the bin
    logic copy_read;
    logic [BIN_BITS-1:0] copy_bin;
    logic [OFFSET_BITS-1:0] copy_offset;
    logic [$clog2(WORD_BYTES*LINE_WORDS):0] copy_bytes;
    logic [WORD-1:0] word_read;
    wire copier_free = !copying && !line_valid;

    // ---- memories: one reader and one writer each
    wire [BIN_BITS-1:0] state_address = state == IDLE ? frame_bin : bin;
    logic [META-1:0] meta_read;
    logic [WORD-1:0] partial_read;
    logic state_write;
    logic [META-1:0] meta_written;
    logic [WORD-1:0] partial_written;
    logic word_write;
    logic [L:0] word_address;
    logic [WORD-1:0] word_written;
    always_ff @(posedge clk) begin
        meta_read <= metas[state_address];
        partial_read <= partials[state_address];
        if (state_write) begin
            metas[bin] <= meta_written;
            partials[bin] <= partial_written;
        end
        word_read <= words[{copy_bin, copy_line | {1'b0, copied[L-1:0]}}];
        if (word_write) words[{bin, word_address}] <= word_written;
    end

    // ---- frames
    wire [2*WORD-1:0] shifted = {{WORD{1'b0}}, rest[WORD-1:0]} << {shift, 3'b000};
    wire [WORD-1:0] joined = carry | shifted[WORD-1:0];
    wire word_full = todo >= TODO_BITS'(WORD_BYTES);
    wire line_full = word_full && &fill[W +: L];
    wire room = offset != max_lines;
    // The last word of a line is written when the copier can take the line.
    wire append = state == APPEND && !(line_full && room && !copier_free);
    wire close = state == CLOSE && (copier_free || !room || fill[W+L-1:0] == 0);
    wire start_copy = room && ((append && line_full) || (close && fill[W+L-1:0] != 0));
    assign frame_ready = state == IDLE;
    assign flushed = state == DONE && copier_free;
    assign word_write = (append && word_full) || (start_copy && state == CLOSE);
    assign word_address = fill[W +: L+1];
    assign word_written = state == CLOSE ? carry : joined;
    assign state_write = state == CLEAR || (append && !word_full) || close;
    assign meta_written = append ? {offset, fill[W +: L+1], todo[W-1:0]} : {META{1'b0}};
    assign partial_written = append ? joined : {WORD{1'b0}};

    always_ff @(posedge clk) begin
        case (state)
            CLEAR: begin
                bin <= bin + 1'b1;
                if (&bin) state <= IDLE;
            end
            IDLE:
                if (frame_valid) begin
                    bin <= frame_bin;
                    rest <= {{(WORD*FRAME_WORDS - 8*FRAME_BYTES){1'b0}}, frame};
                    length <= frame_bytes;
                    state <= LOAD;
                end else if (drained) begin
                    bin <= 0;
                    state <= READ;
                end
            LOAD: begin
                {offset, fill} <= meta_read;
                carry <= partial_read;
                shift <= meta_read[W-1:0];
                todo <= {1'b0, length} + TODO_BITS'(meta_read[W-1:0]);
                state <= APPEND;
            end
            APPEND:
                if (append) begin
                    if (word_full) begin
                        carry <= shifted[2*WORD-1:WORD];
                        rest <= rest >> WORD;
                        todo <= todo - TODO_BITS'(WORD_BYTES);
                        fill[W +: L+1] <= fill[W +: L+1] + 1'b1;
                        if (line_full) begin
                            if (room) offset <= offset + 1'b1;
                            else overflow <= 1;
                        end
                    end else state <= IDLE;
                end
            READ: state <= REST;
            REST: begin
                {offset, fill} <= meta_read;
                carry <= partial_read;
                state <= CLOSE;
            end
            CLOSE:
                if (close) begin
                    if (!room && fill[W+L-1:0] != 0) overflow <= 1;
                    bin <= bin + 1'b1;
                    state <= &bin ? DONE : READ;
                end
            DONE:
                if (!drained) begin
                    overflow <= 0;
                    state <= IDLE;
                end
        endcase
        if (rst) begin
            state <= CLEAR;
            bin <= 0;
            overflow <= 0;
        end
    end

    // ---- copying of lines
    always_ff @(posedge clk) begin
        copy_read <= copying && !copied[L];
        if (copy_read) line_data <= {word_read, line_data[8*WORD_BYTES*LINE_WORDS-1:WORD]};
        if (start_copy) begin
            copying <= 1;
            copied <= 0;
            copy_line <= {fill[FILL_BITS-1], {L{1'b0}}};
            copy_bin <= bin;
            copy_offset <= offset;
            copy_bytes <= state == CLOSE ? {1'b0, fill[W+L-1:0]} : {1'b1, {(W+L){1'b0}}};
        end else if (copying) begin
            if (!copied[L]) copied <= copied + 1'b1;
            else if (!copy_read) begin
                copying <= 0;
                line_valid <= 1;
            end
        end
        if (line_valid && line_ready) line_valid <= 0;
        if (rst) begin
            copying <= 0;
            copy_read <= 0;
            line_valid <= 0;
        end
    end
    assign line_bin = copy_bin;
    assign line_offset = copy_offset;
    assign line_bytes = copy_bytes;

`ifdef FORMAL
    localparam int COUNT_BITS = OFFSET_BITS + W + L + 2;
    `include "bin_buffers_properties.sv"
`endif
endmodule
