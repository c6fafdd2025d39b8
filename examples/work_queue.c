/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue of work in PE 0's memory, from which all PEs take tasks and to which they add new ones: the integral of a
 * wave from 0 to 1, by intervals that are halved until they are good enough, most of them near 0, where it is steep.
 *
 * The pattern: a lock around data of several words. A PE that finds no work polls one word by an atomic, without the
 * lock, until there is some, so that it does not block the other PEs.
 */
#include <math.h>
#include <shmem.h>
#include <stdio.h>

#include "example.h"

#define CAPACITY 4096
#define WAVES 100

typedef struct {
  double left;
  double right;
} Interval;

/* Every PE has one, and PE 0's is used. Changed under the lock only. */
typedef struct {
  long lock;
  int waiting;              /* tasks in the queue, the youngest last */
  int unfinished;           /* these, and those that PEs work on */
  Interval tasks[CAPACITY]; /* the youngest is taken first, so that there are never many */
} Queue;

static Queue* queue; /* in the symmetric heap, at the same place on all PEs */

/* Statistics of this PE. */
static double area = 0;
static long tasks = 0;

/* Takes a task if there is one. */
static int take(Interval* task) {
  shmem_set_lock(&queue->lock);
  const int count = shmem_int_atomic_fetch(&queue->waiting, 0);
  if (count > 0) {
    shmem_getmem(task, &queue->tasks[count - 1], sizeof(*task), 0);
    shmem_int_atomic_set(&queue->waiting, count - 1, 0);
  }
  shmem_clear_lock(&queue->lock);
  return count > 0;
}

/* Reports one task as done and adds its `count` new ones. */
static void finish(const Interval* new_tasks, int count) {
  shmem_set_lock(&queue->lock);
  const int before = shmem_int_atomic_fetch(&queue->waiting, 0);
  if (before + count > CAPACITY) {
    fprintf(stderr, "work_queue: more than %d tasks are waiting\n", CAPACITY);
    shmem_global_exit(1);
  }
  if (count > 0) {
    shmem_putmem(&queue->tasks[before], new_tasks, (size_t)count * sizeof(*new_tasks), 0);
  }
  shmem_int_atomic_add(&queue->unfinished, count - 1, 0);
  shmem_int_atomic_set(&queue->waiting, before + count, 0);
  shmem_clear_lock(&queue->lock); /* completes earlier puts: the next holder of the lock sees them */
}

/* Almost a sawtooth: expensive, so that sharing the work pays. */
static double sawtooth(double x) {
  double sum = 0;
  for (int k = 1; k <= WAVES; ++k) {
    sum += sin(k * x) / k;
  }
  return sum;
}

static double exact_area(void) {
  double sum = 0;
  for (int k = 1; k <= WAVES; ++k) {
    sum += (1 - cos(k)) / k / k;
  }
  return sum;
}

/* Simpson's rule. */
static double estimate(double left, double right) {
  return (right - left) / 6 * (sawtooth(left) + 4 * sawtooth((left + right) / 2) + sawtooth(right));
}

/* Adds the task's area, or halves the task. */
static int work(Interval task, double tolerance, Interval halves[2]) {
  const double middle = (task.left + task.right) / 2;
  const double fine = estimate(task.left, middle) + estimate(middle, task.right);
  ++tasks;
  if (fabs(fine - estimate(task.left, task.right)) <= tolerance) {
    area += fine;
    return 0;
  }
  halves[0] = (Interval){task.left, middle};
  halves[1] = (Interval){middle, task.right};
  return 2;
}

/* The number of tasks that one PE alone would do: the same for any distribution. */
static long tasks_expected(Interval task, double tolerance) {
  Interval halves[2];
  const int count = work(task, tolerance, halves);
  return count == 0 ? 1 : 1 + tasks_expected(halves[0], tolerance) + tasks_expected(halves[1], tolerance);
}

static void serve(double tolerance) {
  while (shmem_int_atomic_fetch(&queue->unfinished, 0) > 0) {
    Interval task;
    if (shmem_int_atomic_fetch(&queue->waiting, 0) == 0 || !take(&task)) {
      continue; /* others may add some */
    }
    Interval halves[2];
    finish(halves, work(task, tolerance, halves));
  }
}

int main(int argc, char** argv) {
  shmem_init();
  const int me = shmem_my_pe();
  const long digits = number_argument(argc, argv, 1, 5, 1, 14, "[DIGITS]");
  const double tolerance = pow(10, (double)-digits) / 1000;
  const Interval whole = {0, 1};
  queue = must_have(shmem_calloc(1, sizeof(*queue)));
  if (me == 0) {
    queue->tasks[0] = whole;
    queue->unfinished = 1;
    queue->waiting = 1;
  }
  shmem_barrier_all();
  serve(tolerance);
  shmem_barrier_all();

  long wrong = 0;
  if (me == 0) {
    double all_area = 0;
    long all_tasks = 0;
    for (int pe = 0; pe < shmem_n_pes(); ++pe) {
      const long of_this = shmem_long_g(&tasks, pe);
      all_area += shmem_double_g(&area, pe);
      all_tasks += of_this;
      printf("work_queue: PE %d did %ld tasks\n", pe, of_this);
    }
    const double error = fabs(all_area - exact_area());
    printf("work_queue: the area is %.15f, off by %.1e\n", all_area, error);
    wrong = (error > pow(10, (double)-digits)) + (all_tasks != tasks_expected(whole, tolerance));
  }
  const int status = verdict("work_queue", wrong);
  shmem_free(queue);
  shmem_finalize();
  return status;
}
