// scatter_device with few pins, for place and route: the beats come from pins, the lines are folded to 32 pins.
// Registers on both sides keep the pins off the measured paths.
module pin_wrapper #(
    parameter int K = 31,
    parameter int M = 11,
    parameter int LANES = 8,
    parameter int BIN_BITS = 6
) (
    input  logic         clk,
    input  logic         rst,
    input  logic         in_valid,
    input  logic [103:0] in_data,
    input  logic         out_ready,
    output logic         in_ready,
    output logic         flushed,
    output logic         overflow,
    output logic [31:0]  folded
);
    logic rst_r, valid_r, ready_r, taken, out_valid, flushed_d, overflow_d;
    logic [103:0] data_r;
    logic [7:0] out_lane;
    logic [BIN_BITS-1:0] out_bin;
    logic [15:0] out_offset;
    logic [6:0] out_bytes;
    logic [511:0] out_data;
    scatter_device #(.K(K), .M(M), .LANES(LANES), .BIN_BITS(BIN_BITS)) device (
        .clk, .rst(rst_r), .sample(3'd1), .max_lines(16'd1000), .in_valid(valid_r), .in_ready(taken),
        .in_data({24'b0, data_r}), .out_valid, .out_ready(ready_r), .out_lane, .out_bin, .out_offset, .out_bytes,
        .out_data, .flushed(flushed_d), .overflow(overflow_d));
    localparam int ALL = 576;
    logic [ALL-1:0] line;
    logic [63:0] half;
    logic [31:0] fold;
    always_comb begin
        half = 0;
        for (int i = 0; i < ALL/64; i++) half ^= line[64*i +: 64];
    end
    logic [63:0] half_r;
    assign fold = half_r[63:32] ^ half_r[31:0];
    always_ff @(posedge clk) begin
        rst_r <= rst;
        if (taken) begin
            valid_r <= in_valid;
            data_r <= in_data;
        end
        ready_r <= out_ready;
        in_ready <= taken;
        flushed <= flushed_d;
        overflow <= overflow_d;
        line <= {{(ALL - 512 - 7 - 16 - BIN_BITS - 8 - 1){1'b0}}, out_valid, out_lane, out_bin, out_offset, out_bytes, out_data};
        half_r <= half;
        folded <= fold;
    end
endmodule
