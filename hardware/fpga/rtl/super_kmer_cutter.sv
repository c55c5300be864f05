// Cuts a stream of bases into super-k-mers: runs of at most 32 k-mers whose roots have the same minimizer.
//
// K bases are a k-mer, its K-2 middle bases the root, M bases an m-mer. The minimizer is the smallest hash among the
// canonical m-mers of the root. A base that is not good ends the run. `tick` moves the whole pipeline by one base; no
// register of the pipeline changes without it, so a stall needs no other logic. The record of a run appears
// 8 + STAGES ticks after its last base, at most 13 for K up to 32.
module super_kmer_cutter #(
    parameter int K = 31,
    parameter int M = 11
) (
    input  logic                clk,
    input  logic                rst,
    input  logic                tick,
    input  logic                good,
    input  logic [1:0]          base,
    output logic                record_valid,  // in the cycle after a tick
    output logic [4:0]          record_kmers,  // number of k-mers less one
    output logic [31:0]         record_minimizer,
    output logic [2*(K+31)-1:0] record_bases   // the last base in the lowest bits
);
    localparam int WINDOW = K - 1 - M;  // m-mers of a root
    localparam int STAGES = $clog2(WINDOW);
    // Ticks by which `whole` waits for the minimizer of its k-mer.
    localparam int DELAY = 5 + STAGES;
    localparam int HISTORY = K + 31 + DELAY + 2;
    logic [2*HISTORY-1:0] history;  // the newest base in the lowest bits
    logic [5:0] good_run;           // good bases up to the newest, K at most
    always_ff @(posedge clk) begin
        if (tick) begin
            history <= {history[2*HISTORY-3:0], base};
            good_run <= !good ? 6'd0 : good_run == K[5:0] ? K[5:0] : good_run + 6'd1;
        end
        if (rst) good_run <= 0;
    end
    // The canonical m-mer that ends with the newest base.
    wire [2*M-1:0] forward = history[2*M-1:0];
    logic [2*M-1:0] reverse;
    always_comb
        for (int i = 0; i < M; i++) reverse[2*i +: 2] = ~history[2*(M-1-i) +: 2];
    wire [2*M-1:0] canonical = forward < reverse ? forward : reverse;
    // Its hash: (mmer ^ 0x2545f491) * 0x9e3779b1, modulo 2^32, of three products of 16 bits. A register on either side
    // of the multipliers lets these be far from all else.
    logic [31:0] mixed, factor, product;
    logic [15:0] product1, product2;
    logic [31:0] low, low2;
    logic [15:0] cross1, cross2, crossed;
    logic [31:0] hash;
    always_ff @(posedge clk) if (tick) begin
        mixed <= {{(32 - 2*M){1'b0}}, canonical} ^ 32'h2545f491;
        factor <= mixed;
        product <= factor[15:0] * 16'h79b1;
        product1 <= factor[15:0] * 16'h9e37;
        product2 <= factor[31:16] * 16'h79b1;
        low <= product;
        cross1 <= product1;
        cross2 <= product2;
        low2 <= low;
        crossed <= cross1 + cross2;
        hash <= low2 + {crossed, 16'b0};
    end
    // The minimum of the window that ends with a base, by doubling. Stage s has windows of 2^s m-mers; the last one
    // joins two windows that overlap.
    logic [31:0] minimum[0:STAGES];
    assign minimum[0] = hash;
    genvar s;
    generate
        for (s = 0; s < STAGES; s++) begin : window
            localparam int STEP = (2 << s) <= WINDOW ? (1 << s) : WINDOW - (1 << s);
            logic [32*STEP-1:0] earlier;
            wire [31:0] oldest = earlier[32*STEP-1 -: 32];
            wire [32*STEP+31:0] all = {earlier, minimum[s]};
            logic [31:0] smaller;
            always_ff @(posedge clk) if (tick) begin
                earlier <= all[32*STEP-1:0];
                smaller <= minimum[s] < oldest ? minimum[s] : oldest;
            end
            assign minimum[s+1] = smaller;
        end
    endgenerate
    // The root of a k-mer ends one base before the k-mer, so the minimum of one tick ago belongs to this k-mer.
    logic [DELAY-1:0] whole;  // whether the newest bases were a k-mer, by tick
    logic [31:0] kmer_minimizer;
    logic kmer_whole, kmer_same;
    always_ff @(posedge clk) begin
        if (tick) begin
            whole <= {whole[DELAY-2:0], good_run == K[5:0]};
            kmer_minimizer <= minimum[STAGES];
            kmer_same <= minimum[STAGES] == kmer_minimizer;
            kmer_whole <= whole[DELAY-1];
        end
        if (rst) begin
            whole <= 0;
            kmer_whole <= 0;
        end
    end
    // Runs of k-mers with one minimizer.
    logic open;
    logic [4:0] kmers;
    logic [31:0] minimizer;
    wire closes = open && (!kmer_whole || !kmer_same || kmers == 5'd31);
    always_ff @(posedge clk) begin
        record_valid <= tick && closes;
        if (tick) begin
            record_kmers <= kmers;
            record_minimizer <= minimizer;
            record_bases <= history[2*(DELAY+2) +: 2*(K+31)];
            if (kmer_whole) begin
                kmers <= open && !closes ? kmers + 5'd1 : 5'd0;
                minimizer <= kmer_minimizer;
            end
            open <= kmer_whole;
        end
        if (rst) begin
            open <= 0;
            record_valid <= 0;
        end
    end
endmodule
