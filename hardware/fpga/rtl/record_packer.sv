// Writes a super-k-mer as a frame: its minimizer (4 bytes, lowest first) and its record as genuma stores it.
//
// The record is a byte with the sample in its three highest bits and the number of k-mers less one in the others, then
// the bases, four a byte, the first in the highest bits; unused bits are zero. Byte 0 of the frame is in the lowest
// bits. Also computes the device bin: the highest bits of the hash from which genuma takes the bin of a minimizer. A
// frame leaves five cycles after its super-k-mer.
module record_packer #(
    parameter int K = 31,
    parameter int BIN_BITS = 6
) (
    input  logic                clk,
    input  logic                rst,
    input  logic [2:0]          sample,
    input  logic                record_valid,
    input  logic [4:0]          record_kmers,
    input  logic [31:0]         record_minimizer,
    input  logic [2*(K+31)-1:0] record_bases,
    output logic                frame_valid,
    output logic [167:0]        frame,
    output logic [4:0]          frame_bytes,
    output logic [BIN_BITS-1:0] frame_bin
);
    localparam int BITS = 2 * (K + 31);
    logic valid1, valid2, valid3, valid4;
    logic [4:0] kmers1, kmers2, kmers3, kmers4, kmers5;
    logic [31:0] minimizer1, minimizer2, minimizer3, minimizer4, minimizer5;
    logic [BITS-1:0] bases1, bases2, bases3, bases4, bases5;
    wire [4:0] unused = 5'd31 - record_kmers;  // bases before the first of the record
    // (minimizer ^ (minimizer >> 15)) * 0x85ebca77, modulo 2^32, of three products of 16 bits. A register on either
    // side of the multipliers lets these be far from all else.
    logic [31:0] mixed, factor, product, low;
    logic [15:0] product1, product2, cross1, cross2;
    logic [31:0] spread;
    always_ff @(posedge clk) begin
        valid1 <= record_valid;
        kmers1 <= record_kmers;
        minimizer1 <= record_minimizer;
        mixed <= record_minimizer ^ (record_minimizer >> 15);
        bases1 <= record_bases << {unused[4:3], 4'b0000};
        valid2 <= valid1;
        kmers2 <= kmers1;
        minimizer2 <= minimizer1;
        factor <= mixed;
        bases2 <= bases1 << {~kmers1[2:0], 1'b0};
        valid3 <= valid2;
        kmers3 <= kmers2;
        minimizer3 <= minimizer2;
        product <= factor[15:0] * 16'hca77;
        product1 <= factor[15:0] * 16'h85eb;
        product2 <= factor[31:16] * 16'hca77;
        bases3 <= bases2;
        valid4 <= valid3;
        kmers4 <= kmers3;
        minimizer4 <= minimizer3;
        low <= product;
        cross1 <= product1;
        cross2 <= product2;
        bases4 <= bases3;
        frame_valid <= valid4;
        kmers5 <= kmers4;
        minimizer5 <= minimizer4;
        spread <= low + {cross1 + cross2, 16'b0};
        bases5 <= bases4;
        frame_bytes <= 5'd5 + 5'(({2'b0, kmers4} + 7'(K + 3)) >> 2);
        if (rst) {valid1, valid2, valid3, valid4, frame_valid} <= 0;
    end
    wire [127:0] first_base_highest = {bases5, {(128 - BITS){1'b0}}};
    always_comb begin
        frame[39:0] = {sample, kmers5, minimizer5};
        for (int i = 0; i < 16; i++) frame[40 + 8*i +: 8] = first_base_highest[127 - 8*i -: 8];
    end
    assign frame_bin = spread[31 -: BIN_BITS];

`ifdef FORMAL
    // Each super-k-mer leaves five cycles later as one frame: its bases from the first to the last, and zeros behind.
    // Multiplication and so the device bin are not part of the proof.
    logic [5:0] started = 0;
    initial assume (rst);
    wire [6:0] num_bases = 7'(K) + 7'(kmers5);
    logic [BITS-1:0] bases_of[1:5];
    logic [4:0] kmers_of[1:5];
    logic [31:0] minimizer_of[1:5];
    logic valid_of[1:5];
    always_ff @(posedge clk) begin
        started <= {started[4:0], 1'b1};
        bases_of[1] <= record_bases;
        kmers_of[1] <= record_kmers;
        minimizer_of[1] <= record_minimizer;
        valid_of[1] <= record_valid && !rst;
        for (int i = 2; i <= 5; i++) begin
            bases_of[i] <= bases_of[i-1];
            kmers_of[i] <= kmers_of[i-1];
            minimizer_of[i] <= minimizer_of[i-1];
            valid_of[i] <= valid_of[i-1] && !rst;
        end
        if (started[5] && !rst) begin
            assert (frame_valid == valid_of[5]);
            if (frame_valid) begin
                assert (frame[31:0] == minimizer_of[5] && frame[36:32] == kmers_of[5] && frame[39:37] == sample);
                assert (frame_bytes == 5 + (num_bases + 3) / 4 && frame_bytes <= 21);
                for (int i = 0; i < 64; i++)
                    assert (first_base_highest[127-2*i -: 2] ==
                        (i < num_bases ? 2'(bases_of[5] >> 2*(num_bases - 1 - i)) : 2'b00));
            end
        end
    end
`endif
endmodule
