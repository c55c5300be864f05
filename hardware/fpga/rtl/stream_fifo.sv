// First-in first-out queue of DEPTH words (a power of two). The oldest word is at `out_data` while `out_valid` is 1.
module stream_fifo #(
    parameter int WIDTH = 8,
    parameter int DEPTH = 4
) (
    input  logic             clk,
    input  logic             rst,
    input  logic             in_valid,
    output logic             in_ready,
    input  logic [WIDTH-1:0] in_data,
    output logic             out_valid,
    input  logic             out_ready,
    output logic [WIDTH-1:0] out_data,
    output logic [$clog2(DEPTH):0] level  // number of words
);
    localparam int BITS = $clog2(DEPTH);
    logic [WIDTH-1:0] words[0:DEPTH-1];
    logic [BITS:0] head, tail;
    wire push = in_valid && in_ready;
    wire pop = out_valid && out_ready;
    assign level = tail - head;
    assign in_ready = level != DEPTH[BITS:0];
    assign out_valid = level != 0;
    assign out_data = words[head[BITS-1:0]];
    always_ff @(posedge clk) begin
        if (push) words[tail[BITS-1:0]] <= in_data;
        if (rst) begin
            head <= 0;
            tail <= 0;
        end else begin
            if (push) tail <= tail + 1'b1;
            if (pop) head <= head + 1'b1;
        end
    end

`ifdef FORMAL
    // The word at any place of the queue is the one that was put there, until it leaves: none is lost, doubled or
    // overtaken.
    (* anyconst *) logic [BITS:0] place;
    logic watched = 0;
    logic [WIDTH-1:0] put;
    wire [BITS:0] behind = place - head;
    initial assume (rst);
    always_ff @(posedge clk) begin
        if (rst) watched <= 0;
        else if (push && tail == place) begin
            watched <= 1;
            put <= in_data;
        end else if (pop && head == place) watched <= 0;
        if (!rst) begin
            assert (level <= DEPTH[BITS:0]);
            assert (watched == (behind < level));
            if (watched) assert (words[place[BITS-1:0]] == put);
            if (watched && pop && head == place) assert (out_data == put);
        end
    end
    logic started = 0;
    always_ff @(posedge clk) begin
        started <= 1;
        if (started && !rst && !$past(rst) && $past(out_valid && !out_ready))
            assert (out_valid && $stable(out_data));
    end
`endif
endmodule
