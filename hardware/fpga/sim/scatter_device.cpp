// Runs the Verilator model of scatter_device for genuma, which starts this program and talks to it through pipes.
//
//   genuma-fpga-sim-kK [--stalls SEED] [--batches N] [--measure BASES]
//
// All numbers are little-endian. First this program writes "GNMFPGA1" and K, M, lanes and device bins (4 bytes each).
// A request is: sample, maximum number of lines of a bin, number of beats (4 bytes each), and the beats (16 bytes each,
// as `in_data` of the device). The reply is: overflow (4 bytes: 0 or 1), clock cycles (8 bytes), for each lane and each
// bin the number of its bytes (4 bytes), and then these bytes; with overflow all numbers are 0.
//
// --stalls: the source and the sink pause at random. --batches: fails after N batches, for tests. --measure: scatters random bases and prints bases a CPU second.
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <random>
#include <vector>

#include "Vscatter_device.h"
#include "verilated.h"

namespace {

constexpr uint32_t LINE_BYTES = 64;
constexpr uint32_t BEAT_WORDS = 4;
constexpr uint32_t BINS = 1u << BIN_BITS;
constexpr uint32_t MAX_LINES = 0xffff;
constexpr const char* USAGE = "usage: genuma-fpga-sim [--stalls SEED] [--batches N] [--measure BASES]";

struct Reply {
    bool overflow = false;
    uint64_t cycles = 0;
    // The bytes of each lane and bin, lane by lane.
    std::vector<std::vector<uint8_t>> bins{LANES * BINS};
};

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "genuma-fpga-sim: %s\n", what);
    std::exit(1);
}

class Device {
  public:
    explicit Device(bool stalls, uint32_t seed) : stalls_(stalls), random_(seed) {
        top_.rst = 1;
        for (int i = 0; i < 4; i++) cycle();
        top_.rst = 0;
    }

    Reply scatter(uint32_t sample, uint32_t max_lines, const std::vector<uint32_t>& beats) {
        Reply reply;
        top_.sample = sample;
        top_.max_lines = max_lines;
        const size_t end = beats.size();
        size_t next = 0;
        bool offered = false;
        while (next < end || !top_.flushed) {
            offered = next < end && (offered || !pauses());
            top_.in_valid = offered;
            if (offered) std::memcpy(&top_.in_data, &beats[next], 4 * BEAT_WORDS);
            top_.out_ready = !pauses();
            top_.clk = 0;
            top_.eval();
            if (offered && top_.in_ready) {
                next += BEAT_WORDS;
                offered = false;
            }
            if (top_.out_valid && top_.out_ready) store_line(reply, max_lines);
            top_.clk = 1;
            top_.eval();
            reply.cycles++;
            if (reply.cycles > 64 * 64 * (end + 4096)) fail("the device does not finish a batch");
        }
        reply.overflow = top_.overflow;
        if (reply.overflow)
            for (auto& bin : reply.bins) bin.clear();
        return reply;
    }

  private:
    bool pauses() { return stalls_ && random_() % 3 == 0; }

    void cycle() {
        top_.clk = 0;
        top_.eval();
        top_.clk = 1;
        top_.eval();
    }

    // Stands for the memory behind the device: the place of a line is given by lane, bin and offset.
    void store_line(Reply& reply, uint32_t max_lines) {
        const uint32_t lane = top_.out_lane, bin = top_.out_bin, offset = top_.out_offset, bytes = top_.out_bytes;
        if (lane >= LANES || bin >= BINS || offset >= max_lines || bytes == 0 || bytes > LINE_BYTES)
            fail("the device wrote a line outside of its memory");
        auto& to = reply.bins[lane * BINS + bin];
        if (to.size() != size_t{offset} * LINE_BYTES) fail("the device wrote a line twice or left one out");
        const auto* data = reinterpret_cast<const uint8_t*>(&top_.out_data);
        to.insert(to.end(), data, data + bytes);
    }

    Vscatter_device top_;
    bool stalls_;
    std::mt19937 random_;
};

// False at the end of the input if nothing was read.
bool read_exactly(void* to, size_t bytes) {
    const size_t got = std::fread(to, 1, bytes, stdin);
    if (got == 0 && std::feof(stdin)) return false;
    if (got != bytes) fail("the request is cut off");
    return true;
}

void write_exactly(const void* from, size_t bytes) {
    if (std::fwrite(from, 1, bytes, stdout) != bytes) fail("cannot write the reply");
}

void serve(Device& device, uint64_t max_batches) {
    const uint32_t parameters[] = {KMER, MMER, LANES, BINS};
    write_exactly("GNMFPGA1", 8);
    write_exactly(parameters, sizeof parameters);
    std::fflush(stdout);
    uint32_t request[3];
    for (uint64_t batch = 0; read_exactly(request, sizeof request); batch++) {
        if (batch == max_batches) fail("this device was to fail now");
        const auto [sample, max_lines, num_beats] = request;
        if (sample > 7 || max_lines == 0 || max_lines > MAX_LINES || num_beats == 0 || num_beats % LANES != 0)
            fail("invalid request");
        std::vector<uint32_t> beats(size_t{num_beats} * BEAT_WORDS);
        if (!read_exactly(beats.data(), 4 * beats.size())) fail("the request is cut off");
        const Reply reply = device.scatter(sample, max_lines, beats);
        const uint32_t overflow = reply.overflow;
        write_exactly(&overflow, 4);
        write_exactly(&reply.cycles, 8);
        for (const auto& bin : reply.bins) {
            const uint32_t size = bin.size();
            write_exactly(&size, 4);
        }
        for (const auto& bin : reply.bins) write_exactly(bin.data(), bin.size());
        if (std::fflush(stdout) != 0) fail("cannot write the reply");
    }
}

// Scatters random reads of 150 bases; prints bases, cycles and bases a CPU second.
void measure(Device& device, uint64_t num_bases) {
    constexpr uint32_t READ_BASES = 150;
    std::mt19937_64 random(7);
    std::vector<uint32_t> beats;
    const uint64_t reads = (num_bases / READ_BASES + LANES - 1) / LANES * LANES;
    const auto add = [&](uint64_t bases, uint32_t count, uint32_t flags) {
        for (uint32_t word : {uint32_t(bases), uint32_t(bases >> 32), ~0u, count | flags << 6}) beats.push_back(word);
    };
    // Each round has one read for each lane, a beat for each lane at a time.
    for (uint64_t round = 0; round < reads / LANES; round++)
        for (uint32_t from = 0; from < READ_BASES; from += 32)
            for (uint32_t lane = 0; lane < LANES; lane++)
                add(random(), std::min(32u, READ_BASES - from), from + 32 >= READ_BASES);
    for (uint32_t lane = 0; lane < LANES; lane++) add(0, 0, 2);
    const std::clock_t start = std::clock();
    const Reply reply = device.scatter(0, MAX_LINES, beats);
    const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
    uint64_t bytes = 0;
    for (const auto& bin : reply.bins) bytes += bin.size();
    const uint64_t bases = reads * READ_BASES;
    std::printf("lanes\tbases\tcycles\tcycles_per_base_and_lane\tframe_bytes\toverflow\tcpu_s\tbases_per_cpu_s\n");
    std::printf("%d\t%llu\t%llu\t%.4f\t%llu\t%d\t%.2f\t%.0f\n", LANES, (unsigned long long)bases,
                (unsigned long long)reply.cycles, double(reply.cycles) * LANES / bases, (unsigned long long)bytes,
                reply.overflow, seconds, bases / seconds);
}

uint64_t parse_number(const char* text) {
    char* end = nullptr;
    errno = 0;
    const unsigned long long number = std::strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != 0) fail(USAGE);
    return number;
}

}  // namespace

int main(int count, char** arguments) {
    uint64_t seed = 0, num_bases = 0, max_batches = UINT64_MAX;
    bool stalls = false;
    for (int i = 1; i < count; i += 2) {
        const bool has_value = i + 1 < count;
        if (has_value && std::strcmp(arguments[i], "--stalls") == 0) {
            seed = parse_number(arguments[i + 1]);
            stalls = true;
        } else if (has_value && std::strcmp(arguments[i], "--batches") == 0)
            max_batches = parse_number(arguments[i + 1]);
        else if (has_value && std::strcmp(arguments[i], "--measure") == 0)
            num_bases = parse_number(arguments[i + 1]);
        else
            fail(USAGE);
    }
    const auto device = std::make_unique<Device>(stalls, seed);
    if (num_bases > 0)
        measure(*device, num_bases);
    else
        serve(*device, max_batches);
    return 0;
}
