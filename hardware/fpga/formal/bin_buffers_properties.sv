// What bin_buffers does, for any frames, any pauses of the sink and any time. Included at the end of bin_buffers.
//
// The frames of a bin, one after another, are a string of bytes. Its lines are this string in pieces of LINE_BYTES, in
// order, the last one shorter, without what is beyond `max_lines`. The solver chooses one bin and one place in its
// string, so what holds for these holds for all.
localparam int LINE_BYTES = WORD_BYTES * LINE_WORDS;
localparam int LINE_SHIFT = W + L;
(* anyconst *) logic [BIN_BITS-1:0] the_bin;
(* anyconst *) logic [COUNT_BITS-1:0] place;
(* anyconst *) logic [OFFSET_BITS-1:0] the_max_lines;

// ---- what happened in this batch, to the bin: bytes that came, bytes and lines that left, the byte at `place`
logic [COUNT_BITS-1:0] arrived, left, lines;
logic [7:0] value;
logic [BIN_BITS-1:0] overflow_bin;  // the bin that overflowed first
// A frame that is offered during a reset is none.
wire push = frame_valid && frame_ready && !rst && frame_bin == the_bin;
wire pull = line_valid && line_ready && !rst && line_bin == the_bin;
wire [COUNT_BITS-1:0] within_frame = place - arrived;
wire [COUNT_BITS-1:0] within_line = place - left;
wire overflows = (append && line_full && !room) || (state == CLOSE && close && !room && fill[W+L-1:0] != 0);
always_ff @(posedge clk) begin
    if (push) begin
        arrived <= arrived + COUNT_BITS'(frame_bytes);
        if (within_frame < COUNT_BITS'(frame_bytes)) value <= frame[8*within_frame +: 8];
    end
    if (pull) begin
        lines <= lines + 1'b1;
        left <= left + COUNT_BITS'(line_bytes);
    end
    if (overflows && !overflow) overflow_bin <= bin;
    if (rst || (flushed && !drained)) {arrived, left, lines} <= 0;
end

// ---- what the lane and the host guarantee
logic started = 0;
always_ff @(posedge clk) begin
    started <= 1;
    if (!started) assume (rst);
    assume (max_lines == the_max_lines && max_lines != 0);
    assume (frame_bytes != 0 && frame_bytes <= LENGTH_BITS'(FRAME_BYTES));
    for (int i = 1; i < FRAME_BYTES; i++) if (i >= frame_bytes) assume (frame[8*i +: 8] == 0);
    assume (!drained || !frame_valid);
    if (started && !rst && !$past(rst)) begin
        if ($past(frame_valid && !frame_ready)) assume (frame_valid && $stable({frame, frame_bytes, frame_bin}));
        if ($past(drained && !flushed)) assume (drained);
    end
    // The counters above do not wrap.
    assume (!push || arrived < (1 << (COUNT_BITS - 1)) - FRAME_BYTES);
end

// ---- what must hold at the outputs
wire [COUNT_BITS-1:0] capacity = COUNT_BITS'(max_lines) << LINE_SHIFT;
always_ff @(posedge clk) if (started && !rst) begin
    if (pull) begin
        assert (line_offset == lines && line_offset < max_lines);
        assert (line_bytes != 0 && line_bytes <= LINE_BYTES && (line_bytes == LINE_BYTES || drained));
        if (within_line < COUNT_BITS'(line_bytes))
            assert (place < arrived && line_data[8*within_line[LINE_SHIFT-1:0] +: 8] == value);
    end
    if (flushed) begin
        assert (!line_valid);
        // Nothing is missing but what is beyond `max_lines`, and then the batch is marked; a batch is marked only then.
        assert (left == (arrived < capacity ? arrived : capacity));
        if (arrived > capacity) assert (overflow);
        if (overflow && overflow_bin == the_bin) assert (arrived > capacity);
    end
    if (!$past(rst) && $past(line_valid && !line_ready))
        assert (line_valid && $stable({line_bin, line_offset, line_bytes, line_data}));
end

// ---- invariants that make the proof inductive
wire live = state == APPEND && bin == the_bin;   // the state of the bin is in the registers
wire loads = state == LOAD && bin == the_bin;
wire draining = state == READ || state == REST || state == CLOSE;
wire closed = state == DONE || (draining && the_bin < bin);
wire [META-1:0] meta = metas[the_bin];
wire [WORD-1:0] partial = partials[the_bin];
wire [OFFSET_BITS-1:0] bin_offset = live ? offset : meta[FILL_BITS +: OFFSET_BITS];
wire [L:0] bin_words = live ? fill[W +: L+1] : meta[W +: L+1];  // words in both lines
wire [W-1:0] bin_rest = live ? {W{1'b0}} : meta[W-1:0];        // bytes in the word being filled
wire [COUNT_BITS-1:0] pending = live ? COUNT_BITS'(todo) : loads ? COUNT_BITS'(length) : {COUNT_BITS{1'b0}};
wire [COUNT_BITS-1:0] buffered = arrived - pending;
wire [COUNT_BITS-1:0] buffered_lines = buffered >> LINE_SHIFT;
wire [COUNT_BITS-1:0] started_lines = state == CLEAR ? {COUNT_BITS{1'b0}} : !closed ? COUNT_BITS'(bin_offset)
    : arrived < capacity ? (arrived + LINE_BYTES - 1) >> LINE_SHIFT : COUNT_BITS'(max_lines);
wire busy = copying || line_valid;
wire copies = busy && copy_bin == the_bin;
// Words that were read and are in line_data, at its end.
wire [L:0] copied_words = line_valid ? (L+1)'(LINE_WORDS) : copied - (L+1)'(copy_read);
wire [L-1:0] place_word = place[W +: L];
wire [W-1:0] place_byte = place[W-1:0];
wire [L-1:0] place_shifted = place_word - copied_words[L-1:0];  // its word in line_data
wire [WORD-1:0] copied_word = words[{the_bin, copy_line | {1'b0, place_word}}];
wire [WORD-1:0] filled_word = words[{the_bin, bin_words[L], place_word}];
wire [COUNT_BITS-1:0] within_pending = place - buffered;
wire [COUNT_BITS-1:0] within_rest = within_pending - (live ? COUNT_BITS'(shift) : {COUNT_BITS{1'b0}});
wire [WORD-1:0] word_before = words[{the_bin, copy_line | {1'b0, copied[L-1:0] - 1'b1}}];

always_ff @(posedge clk) if (started && !rst && !$past(rst)) begin
    // The state of the bin.
    assert (arrived >> (COUNT_BITS - 1) == 0 && pending <= arrived);
    if (state == CLEAR) begin
        assert (arrived == 0 && left == 0 && lines == 0 && !overflow && !busy && !copy_read);
        if (the_bin < bin) assert (meta == 0 && partial == 0);
    end else if (closed) begin
        assert (meta == 0 && partial == 0);
        assert (!(arrived > capacity) || overflow);
    end else begin
        assert (bin_words == (L+1)'(buffered >> W) && bin_rest == buffered[W-1:0]);
        assert (bin_offset == (buffered_lines < COUNT_BITS'(max_lines) ? buffered_lines : COUNT_BITS'(max_lines)));
        assert (buffered_lines <= COUNT_BITS'(max_lines) || overflow);
    end
    assert (!overflow || overflow_bin != the_bin || arrived > capacity);
    if (state == LOAD || state == REST) assert (bin != the_bin || (meta_read == meta && partial_read == partial));
    if (state == CLOSE) assert (bin != the_bin || ({offset, fill} == meta && carry == partial));
    if (draining || state == DONE) assert (drained || flushed);
    if (loads) assert (length != 0 && length <= LENGTH_BITS'(FRAME_BYTES));
    if (live) assert (todo <= TODO_BITS'(shift) + TODO_BITS'(FRAME_BYTES));
    // The copier. It reads a word a cycle, so no word is overwritten before it is read.
    assert (!(copying && line_valid));
    if (copying) assert (copied <= (L+1)'(LINE_WORDS) && (copy_read ? copied != 0 : copied == 0 || copied[L]));
    else assert (!copy_read);
    if (copies) begin
        assert (copy_offset == lines && lines + 1'b1 == started_lines && lines < max_lines && copy_line[L-1:0] == 0);
        assert (copy_line[L] == copy_offset[0]);
        assert (copy_bytes == (closed && arrived - left < LINE_BYTES ? arrived - left : LINE_BYTES));
        if (copying && !closed && !copied[L])
            assert ((buffered >> W) - ((lines + 1'b1) << L) <= COUNT_BITS'(copied));
        if (copying && copy_read) assert (word_read == word_before);
    end else assert (lines == started_lines);
    assert (left == (!copies && closed && arrived < capacity ? arrived : lines << LINE_SHIFT));
    // The byte at `place`: in the copier, in the buffer, or in the frame.
    if (place < arrived && place >= left && place < capacity) begin
        if (copies && within_line < LINE_BYTES) begin
            if (COUNT_BITS'(place_word) < COUNT_BITS'(copied_words))
                assert (line_data[8*{place_shifted, place_byte} +: 8] == value);
            else assert (copied_word[8*place_byte +: 8] == value);
        end else if (place >= buffered) begin
            if (live && within_pending < COUNT_BITS'(shift)) assert (carry[8*within_pending +: 8] == value);
            else assert (rest[8*within_rest +: 8] == value);
        end else if (place < buffered - COUNT_BITS'(bin_rest)) assert (filled_word[8*place_byte +: 8] == value);
        else assert (partial[8*place_byte +: 8] == value);
    end
    // What is no byte of a frame is zero.
    for (int i = 0; i < WORD_BYTES; i++) begin
        if (i >= meta[W-1:0] && !(state == CLEAR && the_bin >= bin)) assert (partial[8*i +: 8] == 0);
        if (live && (i >= shift || i >= todo)) assert (carry[8*i +: 8] == 0);
    end
    for (int i = 0; i < FRAME_WORDS*WORD_BYTES; i++) begin
        if (loads && i >= length) assert (rest[8*i +: 8] == 0);
        if (live && i + shift >= todo) assert (rest[8*i +: 8] == 0);
    end
end

// False claims: prove.sh demands a counterexample, which shows that the assumptions can be met.
`ifdef NEVER_COMPLETE
always_ff @(posedge clk) if (started && !rst) assert (!(flushed && !overflow && lines > 1));
`endif
`ifdef NEVER_OVERFLOWS
always_ff @(posedge clk) if (started && !rst) assert (!(flushed && overflow));
`endif
