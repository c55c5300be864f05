// RocksDB as bench/flash.sh measures it: the same keys and values as genuma's table, past the kernel's cache.
//
// usage: rocksdb build DIR ENTRIES
//        rocksdb get DIR ENTRIES THREADS BATCH SECONDS
//
// get prints lookups a second and CPU microseconds a lookup. BATCH 1 is Get, more is MultiGet with async_io. What RocksDB keeps in memory is its index;
// it has no filter to pass (all keys are present), no cache of blocks (cache off), no compression, and blocks that do not cross pages.

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>

// RocksDB uses io_uring only where the program says so.
extern "C" bool RocksDbIOUringEnable() { return true; }

static uint64_t mix(uint64_t x) {
  x *= 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

static uint64_t key(uint64_t number, uint64_t entries) {
  uint64_t step = std::numeric_limits<uint64_t>::max() / entries;
  return (number * step + mix(number) % (step - 1)) & ~uint64_t{1};
}

// Big-endian, so that RocksDB's order of bytes is the order of keys.
static std::string bytes(uint64_t key) {
  key = __builtin_bswap64(key);
  return std::string(reinterpret_cast<const char*>(&key), 8);
}

static std::string value(uint64_t number) {
  std::string value(128, 0);
  for (size_t byte = 0; byte < value.size(); byte++) value[byte] = static_cast<char>(mix(number) >> (byte % 8));
  return value;
}

static void check(const rocksdb::Status& status) {
  if (!status.ok()) {
    fprintf(stderr, "rocksdb: %s\n", status.ToString().c_str());
    exit(1);
  }
}

static rocksdb::Options options() {
  rocksdb::BlockBasedTableOptions table;
  table.block_size = 4096;
  table.block_align = true;
  table.no_block_cache = true;
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compression = rocksdb::kNoCompression;
  options.disable_auto_compactions = true;
  options.max_open_files = -1;
  options.use_direct_reads = true;
  options.advise_random_on_open = true;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

static void build(const std::string& dir, uint64_t entries) {
  std::unique_ptr<rocksdb::DB> db;
  rocksdb::DB* opened = nullptr;
  check(rocksdb::DB::Open(options(), dir, &opened));
  db.reset(opened);
  std::string file = dir + "/bulk.sst";
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options());
  check(writer.Open(file));
  for (uint64_t number = 0; number < entries; number++) check(writer.Put(bytes(key(number, entries)), value(number)));
  check(writer.Finish());
  rocksdb::IngestExternalFileOptions ingest;
  ingest.move_files = true;
  check(db->IngestExternalFile({file}, ingest));
}

static double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

static double cpu() {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  auto seconds = [](timeval time) { return time.tv_sec + time.tv_usec * 1e-6; };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

static uint64_t look_up(rocksdb::DB* db, uint64_t entries, uint64_t thread, size_t batch, double seconds) {
  rocksdb::ReadOptions read;
  read.async_io = true;
  std::vector<uint64_t> numbers(batch);
  std::vector<std::string> keys(batch);
  std::vector<rocksdb::Slice> slices(batch);
  std::vector<rocksdb::PinnableSlice> values(batch);
  std::vector<rocksdb::Status> statuses(batch);
  auto begin = std::chrono::steady_clock::now();
  uint64_t start = mix(begin.time_since_epoch().count() + (thread << 40));
  uint64_t done = 0;
  while (seconds_since(begin) < seconds) {
    for (size_t i = 0; i < batch; i++) numbers[i] = mix(start + done + i) % entries;
    // Sorted, as MultiGet wants them.
    std::sort(numbers.begin(), numbers.end());
    for (size_t i = 0; i < batch; i++) {
      keys[i] = bytes(key(numbers[i], entries));
      slices[i] = keys[i];
      values[i].Reset();
    }
    if (batch == 1) {
      statuses[0] = db->Get(read, db->DefaultColumnFamily(), slices[0], &values[0]);
    } else {
      db->MultiGet(read, db->DefaultColumnFamily(), batch, slices.data(), values.data(), statuses.data(), true);
    }
    for (size_t i = 0; i < batch; i++) check(statuses[i]);
    if (values[0] != value(numbers[0])) check(rocksdb::Status::Corruption("a value is wrong"));
    done += batch;
  }
  return done;
}

int main(int argc, char** argv) {
  if (argc == 4 && !strcmp(argv[1], "build")) {
    build(argv[2], strtoull(argv[3], nullptr, 10));
    return 0;
  }
  if (argc != 7 || strcmp(argv[1], "get")) {
    fprintf(stderr, "usage: rocksdb build|get ...: see the head of the file\n");
    return 2;
  }
  rocksdb::DB* opened = nullptr;
  check(rocksdb::DB::OpenForReadOnly(options(), argv[2], &opened));
  std::unique_ptr<rocksdb::DB> db(opened);
  uint64_t entries = strtoull(argv[3], nullptr, 10);
  size_t threads = strtoull(argv[4], nullptr, 10), batch = strtoull(argv[5], nullptr, 10);
  double seconds = strtod(argv[6], nullptr);
  std::vector<uint64_t> done(threads);
  std::vector<std::thread> running;
  double before = cpu();
  auto begin = std::chrono::steady_clock::now();
  for (size_t thread = 0; thread < threads; thread++)
    running.emplace_back([&, thread] { done[thread] = look_up(db.get(), entries, thread, batch, seconds); });
  for (auto& thread : running) thread.join();
  double took = seconds_since(begin), spent = cpu() - before, lookups = 0;
  for (uint64_t part : done) lookups += part;
  printf("%.0f %.2f\n", lookups / took, spent * 1e6 / lookups);
}
