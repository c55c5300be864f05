/*
 * Calls every function of genuma_place.h with valid and with invalid arguments, on a machine of any number of nodes.
 * Exit code 0 if all checks hold; otherwise standard error has the first one that does not. Where the kernel forbids
 * placement already, only what must hold there is checked. The argument "nodes" is for emulated machines, which are
 * slow: there must be several nodes, and threads do less.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "genuma_place.h"

#define CHECK(condition)                                                                                        \
    do {                                                                                                        \
        if (!(condition)) {                                                                                     \
            fprintf(stderr, "line %d: %s; last message: %s\n", __LINE__, #condition, genuma_last_message());    \
            exit(1);                                                                                            \
        }                                                                                                       \
    } while (0)

enum { MAX_NODES = 1024, NUM_THREADS = 8 };

#define BLOCK_BYTES ((size_t)4 << 20)

static int usable_nodes[MAX_NODES];
static int num_usable_nodes;
static int num_rounds = 40;
static uint64_t pages[MAX_NODES];

static int last_message_has(const char *part) {
    return strstr(genuma_last_message(), part) != NULL;
}

static uint64_t num_pages(size_t bytes) {
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page_bytes - 1) / page_bytes;
}

/* Whether all pages of a range are on one node. */
static int is_on_node(const void *start, size_t bytes, int node) {
    uint64_t absent = 1;
    CHECK(genuma_pages_by_node(start, bytes, pages, (size_t)genuma_node_limit(), &absent) == 0);
    return absent == 0 && pages[node] == num_pages((uintptr_t)start % (uintptr_t)sysconf(_SC_PAGESIZE) + bytes);
}

static void check_information(void) {
    CHECK(strcmp(genuma_version(), GENUMA_PLACE_VERSION) == 0);
    CHECK(strcmp(genuma_last_message(), "") == 0);
    CHECK(genuma_node_limit() >= 1 && genuma_node_limit() <= MAX_NODES);
    CHECK(genuma_current_node() >= 0 && genuma_current_node() < genuma_node_limit());
    num_usable_nodes = genuma_usable_nodes(NULL, 0);
    CHECK(num_usable_nodes >= 1 && num_usable_nodes <= genuma_node_limit());
    usable_nodes[1] = -7;
    CHECK(genuma_usable_nodes(usable_nodes, 1) == num_usable_nodes);
    CHECK(usable_nodes[1] == -7);
    CHECK(genuma_usable_nodes(usable_nodes, MAX_NODES) == num_usable_nodes);
    for (int i = 0; i < num_usable_nodes; i++) CHECK(usable_nodes[i] >= (i == 0 ? 0 : usable_nodes[i - 1] + 1));
    CHECK(genuma_usable_nodes(NULL, 1) == -EINVAL && last_message_has("nodes is NULL"));
}

/* Each policy gives zeroed memory, and "bind" and "interleave" the nodes that they name. */
static void check_allocations(void) {
    static const char *const policies[] = {"local", "bind all", "interleave all", "kernel-weighted all", "preferred all"};
    char policy[64];
    void *memory;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        CHECK(genuma_alloc(12345, policies[i], 0, &memory) >= 0 && memory != NULL);
        CHECK((uintptr_t)memory % (uintptr_t)sysconf(_SC_PAGESIZE) == 0);
        for (int j = 0; j < 12345; j++) CHECK(((unsigned char *)memory)[j] == 0);
        memset(memory, 1, 12345);
        CHECK(genuma_free(memory) == 0);
    }
    for (int i = 0; i < num_usable_nodes; i++) {
        snprintf(policy, sizeof policy, "bind %d", usable_nodes[i]);
        CHECK(genuma_alloc(BLOCK_BYTES, policy, 0, &memory) == 0);
        CHECK(is_on_node(memory, BLOCK_BYTES, usable_nodes[i]));
        CHECK(is_on_node((char *)memory + 1, 1, usable_nodes[i]));
        CHECK(genuma_free(memory) == 0);
    }
    CHECK(genuma_alloc(BLOCK_BYTES, "interleave all", 0, &memory) == 0);
    CHECK(genuma_pages_by_node(memory, BLOCK_BYTES, pages, (size_t)genuma_node_limit(), NULL) == 0);
    uint64_t share = num_pages(BLOCK_BYTES) / (uint64_t)num_usable_nodes;
    for (int i = 0; i < num_usable_nodes; i++) {
        CHECK(pages[usable_nodes[i]] >= share && pages[usable_nodes[i]] <= share + 1);
    }
    CHECK(genuma_free(memory) == 0);
    if (num_usable_nodes > 1) {
        int first = usable_nodes[0], last = usable_nodes[num_usable_nodes - 1];
        snprintf(policy, sizeof policy, "weighted %d:3,%d:1", first, last);
        CHECK(genuma_alloc(BLOCK_BYTES, policy, 0, &memory) == 0);
        CHECK(genuma_pages_by_node(memory, BLOCK_BYTES, pages, (size_t)genuma_node_limit(), NULL) == 0);
        CHECK(pages[first] == num_pages(BLOCK_BYTES) / 4 * 3 && pages[last] == num_pages(BLOCK_BYTES) / 4);
        CHECK(genuma_free(memory) == 0);
    }
    /* Huge pages, or base pages and a message. */
    int code = genuma_alloc(2 * BLOCK_BYTES, "local", GENUMA_HUGE_PAGES, &memory);
    CHECK(code == 0 || (code == GENUMA_NOT_AS_REQUESTED && last_message_has("huge pages")));
    memset(memory, 1, 2 * BLOCK_BYTES);
    CHECK(genuma_free(memory) == 0);
    CHECK(genuma_alloc(1, "local", GENUMA_HUGE_PAGES, &memory) == GENUMA_NOT_AS_REQUESTED);
    CHECK(last_message_has("base pages are used"));
    CHECK(genuma_free(memory) == 0);
}

static void check_allocation_errors(void) {
    static const char *const invalid[] = {"", "spread all", "bind", "bind x", "weighted 0", "weighted 0:0", "local 0", "\xff"};
    void *memory = &memory;
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
        CHECK(genuma_alloc(1, invalid[i], 0, &memory) == -EINVAL && memory == NULL);
    }
    CHECK(genuma_alloc(1, "spread all", 0, &memory) == -EINVAL && last_message_has("'spread all' is not a memory policy"));
    CHECK(genuma_alloc(0, "local", 0, &memory) == -EINVAL && last_message_has("bytes is 0"));
    CHECK(genuma_alloc(1, NULL, 0, &memory) == -EINVAL && last_message_has("policy is NULL"));
    CHECK(genuma_alloc(1, "local", 0, NULL) == -EINVAL && last_message_has("memory is NULL"));
    CHECK(genuma_alloc(1, "local", 2, &memory) == -EINVAL && last_message_has("flags 0x2"));
    CHECK(genuma_alloc(1, "bind 1000", 0, &memory) == -ENODEV && last_message_has("no node 1000"));
    CHECK(genuma_alloc(SIZE_MAX, "local", 0, &memory) == -ENOMEM && last_message_has("do not fit"));
    CHECK(genuma_alloc(SIZE_MAX / 4, "interleave all", 0, &memory) == -ENOMEM && memory == NULL);
    CHECK(genuma_free(NULL) == 0);
    CHECK(genuma_free(&memory) == -EINVAL && last_message_has("is not memory of genuma_alloc"));
    CHECK(genuma_alloc(1, "local", 0, &memory) == 0);
    CHECK(genuma_free((char *)memory + 1) == -EINVAL);
    CHECK(genuma_free(memory) == 0 && genuma_free(memory) == -EINVAL);
}

static void check_page_counts(void) {
    size_t limit = (size_t)genuma_node_limit();
    uint64_t absent, present = 0;
    char *mapping = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mapping != MAP_FAILED);
    CHECK(madvise(mapping, BLOCK_BYTES, MADV_NOHUGEPAGE) == 0 || errno == EINVAL);
    memset(mapping, 1, BLOCK_BYTES / 4);
    CHECK(genuma_pages_by_node(mapping, BLOCK_BYTES, pages, limit, &absent) == 0);
    for (size_t i = 0; i < limit; i++) present += pages[i];
    CHECK(present == num_pages(BLOCK_BYTES) / 4 && absent == num_pages(BLOCK_BYTES) / 4 * 3);
    CHECK(genuma_pages_by_node(mapping, 1, pages, 0, NULL) == -ERANGE && last_message_has("0 entries"));
    CHECK(munmap(mapping, BLOCK_BYTES) == 0);
    /* Without a mapping. */
    CHECK(genuma_pages_by_node(mapping, BLOCK_BYTES, pages, limit, &absent) == 0);
    CHECK(absent == num_pages(BLOCK_BYTES));
    CHECK(genuma_pages_by_node(NULL, 1, pages, limit, NULL) == -EINVAL);
    CHECK(genuma_pages_by_node(pages, 0, pages, limit, NULL) == -EINVAL);
    CHECK(genuma_pages_by_node(pages, 1, NULL, limit, NULL) == -EINVAL);
    CHECK(genuma_pages_by_node(pages, SIZE_MAX, pages, limit, NULL) == -EINVAL);
}

static void check_replicas(void) {
    size_t bytes = BLOCK_BYTES / 2 + 5;
    unsigned char *data = malloc(bytes);
    char cpus[64];
    genuma_replicas *replicas;
    CHECK(data != NULL);
    for (size_t i = 0; i < bytes; i++) data[i] = (unsigned char)(i * 7 + i / 256);
    CHECK(genuma_replicate(data, bytes, "all", 0, &replicas) == 0 && replicas != NULL);
    for (int i = 0; i < num_usable_nodes; i++) {
        const void *copy = genuma_copy_on_node(replicas, usable_nodes[i]);
        CHECK(copy != NULL && copy != data && memcmp(copy, data, bytes) == 0);
        CHECK(is_on_node(copy, bytes, usable_nodes[i]));
        snprintf(cpus, sizeof cpus, "node %d", usable_nodes[i]);
        if (genuma_begin_scope(NULL, cpus) == -ENODEV) continue; /* a node without CPUs */
        CHECK(genuma_current_node() == usable_nodes[i]);
        CHECK(genuma_nearest_copy(replicas) == copy);
        CHECK(genuma_end_scope() == 0);
    }
    memset(data, 0, bytes);
    CHECK(((const unsigned char *)genuma_nearest_copy(replicas))[1] == 7);
    CHECK(genuma_copy_on_node(replicas, 1000) == NULL && last_message_has("no copy on node 1000"));
    CHECK(genuma_copy_on_node(replicas, -1) == NULL);
    CHECK(genuma_free_replicas(replicas) == 0 && genuma_free_replicas(replicas) == -EINVAL);
    int code = genuma_replicate(data, bytes, "all", GENUMA_HUGE_PAGES, &replicas);
    CHECK(code == 0 || (code == GENUMA_NOT_AS_REQUESTED && last_message_has("huge pages")));
    CHECK(memcmp(genuma_nearest_copy(replicas), data, bytes) == 0);
    CHECK(genuma_free_replicas(replicas) == 0);
    free(data);
}

static void check_replica_errors(void) {
    genuma_replicas *replicas = (genuma_replicas *)&replicas;
    CHECK(genuma_replicate("x", 1, "", 0, &replicas) == -EINVAL && replicas == NULL);
    CHECK(genuma_replicate("x", 1, "0-", 0, &replicas) == -EINVAL && last_message_has("'0-' is not a list of nodes"));
    CHECK(genuma_replicate("x", 1, NULL, 0, &replicas) == -EINVAL && last_message_has("nodes is NULL"));
    CHECK(genuma_replicate("x", 1, "all", 8, &replicas) == -EINVAL);
    CHECK(genuma_replicate("x", 1, "all", 0, NULL) == -EINVAL && last_message_has("replicas is NULL"));
    CHECK(genuma_replicate("x", 0, "all", 0, &replicas) == -EINVAL && last_message_has("bytes is 0"));
    CHECK(genuma_replicate("x", SIZE_MAX, "all", 0, &replicas) == -EINVAL);
    CHECK(genuma_replicate(NULL, 1, "all", 0, &replicas) == -EINVAL && last_message_has("data is NULL"));
    CHECK(genuma_replicate("x", 1, "999-1000", 0, &replicas) == -ENODEV && last_message_has("no node 999 on this machine"));
    /* More than any machine has; no page of it is touched. */
    size_t bytes = (size_t)1 << 44;
    void *data = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data != MAP_FAILED) {
        CHECK(genuma_replicate(data, bytes, "all", 0, &replicas) == -ENOMEM && replicas == NULL);
        CHECK(last_message_has("16 TiB do not fit"));
        CHECK(munmap(data, bytes) == 0);
    }
    CHECK(genuma_nearest_copy(NULL) == NULL && last_message_has("replicas is NULL"));
    CHECK(genuma_copy_on_node(NULL, 0) == NULL && last_message_has("replicas is NULL"));
    CHECK(genuma_free_replicas(NULL) == 0);
}

/* First CPU that the calling thread may use, as text. */
static void first_cpu(char text[16]) {
    cpu_set_t set;
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &set)) {
            snprintf(text, 16, "%d", cpu);
            return;
        }
    }
    CHECK(0);
}

static int policy_mode(void) {
    int mode = -1;
    CHECK(syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0) == 0);
    return mode;
}

static void check_scopes(void) {
    char cpu[16], policy[64];
    cpu_set_t before, inside, after;
    int mode = policy_mode();
    first_cpu(cpu);
    CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
    CHECK(genuma_begin_scope("interleave all", cpu) == 0);
    CHECK(sched_getaffinity(0, sizeof inside, &inside) == 0 && CPU_COUNT(&inside) == 1 && CPU_ISSET(atoi(cpu), &inside));
    CHECK((policy_mode() == 3) == (num_usable_nodes > 1));
    for (int i = 0; i < num_usable_nodes; i++) {
        snprintf(policy, sizeof policy, "bind %d", usable_nodes[i]);
        CHECK(genuma_begin_scope(policy, NULL) == 0);
        /* Larger than what malloc keeps: a new mapping. */
        size_t bytes = (size_t)40 << 20;
        char *memory = malloc(bytes);
        CHECK(memory != NULL);
        memset(memory, 1, bytes);
        CHECK(is_on_node(memory, bytes, usable_nodes[i]));
        free(memory);
        CHECK(genuma_end_scope() == 0);
    }
    CHECK((policy_mode() == 3) == (num_usable_nodes > 1));
    CHECK(genuma_end_scope() == 0);
    CHECK(policy_mode() == mode);
    CHECK(sched_getaffinity(0, sizeof after, &after) == 0 && CPU_EQUAL(&before, &after));
    CHECK(genuma_end_scope() == -EINVAL && last_message_has("no open scope"));
}

static void check_scope_errors(void) {
    cpu_set_t before, after;
    char policy[64];
    CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
    CHECK(genuma_begin_scope(NULL, NULL) == -EINVAL && last_message_has("neither a policy nor CPUs"));
    CHECK(genuma_begin_scope("spread", NULL) == -EINVAL);
    CHECK(genuma_begin_scope(NULL, "") == -EINVAL && genuma_begin_scope(NULL, "node") == -EINVAL);
    CHECK(genuma_begin_scope(NULL, "x") == -EINVAL && last_message_has("'x' is not a list of CPUs"));
    CHECK(genuma_begin_scope(NULL, "60000") == -ENODEV && last_message_has("CPU 60000 does not exist"));
    CHECK(genuma_begin_scope(NULL, "node 1000") == -ENODEV);
    if (num_usable_nodes > 1) {
        snprintf(policy, sizeof policy, "weighted %d:3,%d:1", usable_nodes[0], usable_nodes[1]);
        CHECK(genuma_begin_scope(policy, NULL) == -EOPNOTSUPP && last_message_has("kernel's weights only"));
    }
    /* The CPUs are as before when the policy is invalid. */
    char cpu[16];
    first_cpu(cpu);
    CHECK(genuma_begin_scope("bind 1000", cpu) == -ENODEV);
    CHECK(sched_getaffinity(0, sizeof after, &after) == 0 && CPU_EQUAL(&before, &after));
    CHECK(genuma_end_scope() == -EINVAL);
}

static genuma_replicas *shared_replicas;

static void *run_thread(void *argument) {
    long number = (long)argument;
    char text[64];
    uint64_t counts[MAX_NODES];
    for (int round = 0; round < num_rounds; round++) {
        unsigned char *memory;
        void *start, *none;
        size_t bytes = 4096 * (size_t)(1 + number);
        CHECK(genuma_begin_scope("interleave all", NULL) == 0);
        CHECK(genuma_alloc(bytes, "local", 0, &start) == 0);
        memory = start;
        memset(memory, (int)number, bytes);
        CHECK(strcmp(genuma_nearest_copy(shared_replicas), "shared") == 0);
        snprintf(text, sizeof text, "unknown-%ld", number);
        CHECK(genuma_alloc(1, text, 0, &none) == -EINVAL && none == NULL);
        snprintf(text, sizeof text, "'unknown-%ld' is not", number);
        CHECK(last_message_has(text));
        CHECK(genuma_pages_by_node(memory, bytes, counts, (size_t)genuma_node_limit(), NULL) == 0);
        for (size_t i = 0; i < bytes; i++) CHECK(memory[i] == number);
        CHECK(genuma_free(memory) == 0);
        CHECK(genuma_end_scope() == 0);
    }
    /* What a thread leaves open ends with it. */
    CHECK(genuma_begin_scope("local", NULL) == 0);
    return NULL;
}

static void check_threads(void) {
    pthread_t threads[NUM_THREADS];
    CHECK(genuma_replicate("shared", 7, "all", 0, &shared_replicas) == 0);
    for (long i = 0; i < NUM_THREADS; i++) CHECK(pthread_create(&threads[i], NULL, run_thread, (void *)i) == 0);
    for (int i = 0; i < NUM_THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(genuma_end_scope() == -EINVAL);
    CHECK(genuma_free_replicas(shared_replicas) == 0);
}

/* From here on the kernel refuses the calls that place memory and threads with EPERM, as containers do. */
static void forbid_placement(void) {
    static const unsigned calls[] = {SYS_mbind, SYS_set_mempolicy, SYS_get_mempolicy, SYS_move_pages, SYS_sched_setaffinity};
    enum { NUM_CALLS = sizeof calls / sizeof *calls };
    struct sock_filter filter[NUM_CALLS + 3];
    filter[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
    for (int i = 0; i < NUM_CALLS; i++) {
        filter[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], (unsigned char)(NUM_CALLS - i), 0);
    }
    filter[NUM_CALLS + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[NUM_CALLS + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    struct sock_fprog program = {NUM_CALLS + 3, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

/* Where the kernel refuses, memory can be used, and the return code says what was not done. */
static void check_forbidden(void) {
    int expected = num_usable_nodes > 1 ? GENUMA_NOT_AS_REQUESTED : 0;
    char cpu[16];
    void *memory;
    uint64_t absent;
    genuma_replicas *replicas;
    first_cpu(cpu);
    forbid_placement();
    CHECK(genuma_alloc(BLOCK_BYTES, "interleave all", 0, &memory) == expected);
    CHECK(expected == 0 || last_message_has("may not set memory policies"));
    memset(memory, 1, BLOCK_BYTES);
    /* The whole block is counted by numa_maps; for other memory there is no way. */
    CHECK(genuma_pages_by_node(memory, BLOCK_BYTES, pages, (size_t)genuma_node_limit(), &absent) == 0 && absent == 0);
    CHECK(genuma_pages_by_node(pages, sizeof pages, pages, 1, NULL) == -EPERM && last_message_has("move_pages"));
    CHECK(genuma_free(memory) == 0);
    CHECK(genuma_replicate("data", 5, "all", 0, &replicas) == expected);
    CHECK(strcmp(genuma_nearest_copy(replicas), "data") == 0);
    CHECK(genuma_free_replicas(replicas) == 0);
    CHECK(genuma_begin_scope("bind all", NULL) == expected && genuma_end_scope() == 0);
    CHECK(genuma_begin_scope(NULL, cpu) == GENUMA_NOT_AS_REQUESTED && last_message_has("sched_setaffinity"));
    CHECK(genuma_end_scope() == 0);
    CHECK(genuma_alloc(1, "bind 1000", 0, &memory) == -ENODEV);
}

int main(int argc, char **argv) {
    int is_emulated = argc > 1 && strcmp(argv[1], "nodes") == 0;
    int is_forbidden = syscall(SYS_get_mempolicy, NULL, NULL, 0, NULL, 0) != 0 || syscall(SYS_move_pages, 0, 0, NULL, NULL, NULL, 0) != 0;
    if (is_emulated) num_rounds = 4;
    check_information();
    CHECK(!is_emulated || (num_usable_nodes > 1 && !is_forbidden));
    check_allocation_errors();
    check_replica_errors();
    if (!is_forbidden) {
        check_allocations();
        check_page_counts();
        check_replicas();
        check_scopes();
        check_scope_errors();
        check_threads();
    }
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        check_forbidden();
        return 0;
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    printf("all checks hold on %d nodes%s\n", num_usable_nodes, is_forbidden ? ", which the kernel forbids to use" : "");
    return 0;
}
