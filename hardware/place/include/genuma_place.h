/*
 * genuma_place.h: places memory on NUMA nodes of Linux, for C, C++ and Fortran.
 *
 *   genuma_alloc        memory with a policy: local, bound to nodes, interleaved, weighted
 *   genuma_replicate    one copy of read-only data on each node, and the copy nearest to the calling thread
 *   genuma_begin_scope  memory policy and CPUs of the calling thread, until genuma_end_scope
 *
 * Link with -lgenuma_place.
 *
 * Return codes. Functions that return int return, unless stated otherwise:
 *   0                         all of the request was applied
 *   GENUMA_NOT_AS_REQUESTED   (1) the call succeeded and its result can be used and must be freed or ended, but the
 *                             kernel did not apply all of the request: memory policies are forbidden in this container,
 *                             the kernel lacks the policy, or there are no huge pages
 *   -errno                    the call failed and changed nothing. -EINVAL: an argument is invalid (NULL, size 0,
 *                             unknown text). -ENODEV: a node or CPU does not exist, or this process may not use it.
 *                             -ENOMEM: too little free memory. -EOPNOTSUPP, -ERANGE: see the function.
 *                             -ENOTRECOVERABLE: a defect in the library. Other values: a system call failed with this
 *                             errno, for example -EPERM where a container forbids it.
 * genuma_last_message() has the reason for every value except 0. Functions do not change errno on purpose.
 *
 * Policies are texts:
 *   "local"                    the node of the calling thread; other nodes when it is full
 *   "bind NODES"               these nodes and no other
 *   "interleave NODES"         page by page over these nodes
 *   "weighted NODE:WEIGHT,..." as many consecutive pages on each node as its weight says (1 to 255): "weighted 0:3,1:1"
 *   "kernel-weighted NODES"    the same with the weights of the kernel (Linux 6.9; before, interleaved)
 *   "preferred NODES"          the nearest of these nodes with free memory; other nodes when all are full
 * NODES is a list such as "0", "0-3,8" or "all", which means all nodes whose memory this process may use.
 *
 * On a machine with one node every policy is the same as "local", and all functions work.
 *
 * Threads: all functions may be called from several threads at the same time. As with malloc and free, memory that is
 * being freed must not be in use. A process that forks while it has several threads must not call them in the child
 * before exec.
 *
 * Placing memory takes one or a few system calls and reads files of the kernel: it is meant for large blocks, from
 * about 1 MiB. Only genuma_nearest_copy and genuma_copy_on_node are made for inner loops.
 */
#ifndef GENUMA_PLACE_H
#define GENUMA_PLACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this header. genuma_version() is the version of the library. */
#define GENUMA_PLACE_VERSION "0.2.0"

/* Return code: the call succeeded, but the kernel did not apply all of the request. */
#define GENUMA_NOT_AS_REQUESTED 1

/* Flag: transparent huge pages (2 MiB on x86-64) where the memory is large enough for them. Interleaved memory then
 * alternates in steps of a huge page. Without the flag memory is in base pages (4 KiB on x86-64), never merged. */
#define GENUMA_HUGE_PAGES 1u

/* Copies of read-only data, one on each of several nodes. */
typedef struct genuma_replicas genuma_replicas;

/* Version of the library, such as "0.2.0". The text is constant and is not freed. Never NULL. */
const char *genuma_version(void);

/* Message of the last call of this thread that did not return 0 (or that returned NULL): what is wrong, where, and
 * what is possible instead. Empty before the first one. The text belongs to the library and is valid until the next
 * such call of this thread. Never NULL. */
const char *genuma_last_message(void);

/* All node numbers of this machine are less than the return value: the length of an array with an entry for each
 * node. 1 on a machine with one node. Never negative. */
int genuma_node_limit(void);

/* Writes the numbers of the nodes whose memory this process may use, ascending, to nodes, at most capacity of them.
 * Returns how many nodes there are, at least 1; with nodes NULL and capacity 0 it only counts them.
 * Errors: -EINVAL. */
int genuma_usable_nodes(int *nodes, size_t capacity);

/* Node of the CPU that runs the calling thread. It may change at once unless the thread is restricted to CPUs of one
 * node. 0 where the kernel cannot report it. One system call. Never negative. */
int genuma_current_node(void);

/* Allocates bytes bytes under policy, zeroed, all pages present. flags: 0 or GENUMA_HUGE_PAGES.
 * *memory: address, aligned to a page; NULL after an error. The caller frees it with genuma_free.
 * The policy of the memory has priority over that of the thread. Free memory of the nodes and of the control group is
 * compared first: too much is -ENOMEM, and nothing is touched.
 * Errors: -EINVAL, -ENODEV, -ENOMEM, errno of mmap, mbind or madvise. */
int genuma_alloc(size_t bytes, const char *policy, unsigned flags, void **memory);

/* Frees memory of genuma_alloc; NULL is allowed.
 * Errors: -EINVAL: no memory of genuma_alloc starts there, or it was freed before. Nothing happens then. */
int genuma_free(void *memory);

/* Counts the base pages of the bytes bytes from start on each node, whatever allocated them: pages[i] is the number of
 * pages on node i, for i from 0 to num_nodes - 1. Pages that are only partly in the range count. *absent (may be NULL):
 * pages that are nowhere: never written, swapped out, or without a mapping. Reads none of the memory. The time is
 * proportional to the number of pages.
 * Errors: -EINVAL. -ERANGE: a page is on node num_nodes or above (use genuma_node_limit). -EPERM: the container forbids
 * move_pages; whole blocks of genuma_alloc are counted in this case too. */
int genuma_pages_by_node(const void *start, size_t bytes, uint64_t *pages, size_t num_nodes, uint64_t *absent);

/* Copies the bytes bytes at data to the memory of each node of the list nodes, such as "all" or "0,2". The caller may
 * free or change data afterwards. *replicas: the copies; NULL after an error. The caller frees them with
 * genuma_free_replicas. If a node lacks memory, the error names it and no copy is left.
 * Errors: as genuma_alloc. */
int genuma_replicate(const void *data, size_t bytes, const char *nodes, unsigned flags, genuma_replicas **replicas);

/* First byte of the copy nearest to the CPU that runs the calling thread. Aligned to a page, read only, valid until
 * genuma_free_replicas. About 10 ns; no system call. A thread that is restricted to one node may keep the address.
 * Returns NULL if replicas is NULL. */
const void *genuma_nearest_copy(const genuma_replicas *replicas);

/* First byte of the copy on node, or NULL if there is none or replicas is NULL. */
const void *genuma_copy_on_node(const genuma_replicas *replicas, int node);

/* Frees all copies; NULL is allowed. No thread may use a copy any more.
 * Errors: -EINVAL: not from genuma_replicate, or freed before. Nothing happens then. */
int genuma_free_replicas(genuma_replicas *replicas);

/* Sets memory policy and CPUs of the calling thread until genuma_end_scope. policy (NULL: unchanged) applies to pages
 * that the thread touches first and that have no policy of their own, whoever allocates them; memory that malloc has
 * kept from earlier stays where it is. cpus (NULL: unchanged): a list such as "0-7,16", or "node 1" for the CPUs of a
 * node. Allowed are the CPUs that the first thread of the process could use when the library first asked for them.
 * Scopes can be nested. Threads that are started inside inherit policy and CPUs and keep them.
 * Errors: -EINVAL, -ENODEV, errno of set_mempolicy or sched_setaffinity. -EOPNOTSUPP: "weighted" with other weights
 * than the kernel's; use "kernel-weighted" or "interleave". */
int genuma_begin_scope(const char *policy, const char *cpus);

/* Ends the innermost scope of the calling thread: restores the policy and the CPUs from before it.
 * Errors: -EINVAL: this thread has no open scope. errno of set_mempolicy or sched_setaffinity: the scope is ended, but
 * not all of the former state could be restored. */
int genuma_end_scope(void);

#ifdef __cplusplus
}
#endif

#endif
