/* Loads that feel what measuring costs a job: `disturb NAME` does the same work each time that it reads a byte, and prints
 * the seconds it took. So a bare one and one that is measured can take turns.
 *
 * Only the work is timed, not the start of the program and the second and a half after it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void forks(void)
{
    for (int i = 0; i < 60; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        waitpid(child, NULL, 0);
    }
}

static void *nothing(void *unused)
{
    return unused;
}

static void threads(void)
{
    for (int i = 0; i < 400; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, nothing, NULL) == 0)
            pthread_join(thread, NULL);
    }
}

static void faults(void)
{
    size_t size = 32 << 20;
    char *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        exit(1);
    madvise(block, size, MADV_NOHUGEPAGE);
    for (size_t at = 0; at < size; at += 4096)
        block[at] = 1;
    munmap(block, size);
}

static int there[2], back[2];

static void begin_switching(void)
{
    char word;
    if (pipe(there) || pipe(back))
        exit(1);
    if (fork() == 0) {
        close(there[1]);
        while (read(there[0], &word, 1) == 1)
            if (write(back[1], &word, 1) != 1)
                break;
        _exit(0);
    }
}

static void switches(void)
{
    char word = 'x';
    if (!there[1])
        begin_switching();
    for (int i = 0; i < 3000; i++)
        if (write(there[1], &word, 1) != 1 || read(back[0], &word, 1) != 1)
            exit(1);
}

static void reads_and_writes(void)
{
    char word[16] = {0};
    char name[] = "disturb-XXXXXX";
    int file = mkstemp(name);
    unlink(name);
    for (int i = 0; i < 16000; i++) {
        if (pwrite(file, word, sizeof word, i % 4096) < 0 || pread(file, word, sizeof word, i % 4096) < 0)
            exit(1);
    }
    close(file);
}

static void files(void)
{
    char name[] = "disturb-XXXXXX";
    if (!mkdtemp(name) || chdir(name))
        exit(1);
    for (int i = 0; i < 700; i++) {
        int file = open("short", O_CREAT | O_WRONLY, 0600);
        if (file < 0 || write(file, "x", 1) != 1)
            exit(1);
        close(file);
        unlink("short");
    }
    if (chdir("..") || rmdir(name))
        exit(1);
}

static void computes(void)
{
    volatile unsigned long sum = 0;
    for (unsigned long i = 0; i < 10000000UL; i++)
        sum += i;
}

/* On one CPU, the same for all: whether the scheduler puts a child or a partner on another one must not decide. */
static void stay_on_the_first_cpu(void)
{
    cpu_set_t allowed, one;
    int first = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed))
        exit(1);
    while (!CPU_ISSET(first, &allowed))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    if (sched_setaffinity(0, sizeof one, &one))
        exit(1);
}

/* What measuring costs at the start is not timed: a meter needs some tenths of a second to see what kind of job it has, and
 * the kernel a second to switch off perf events that nobody has open any more. */
static void start_up(void (*load)(void))
{
    double end = now() + 0.4;
    while (now() < end)
        load();
    usleep(1200000);
}

enum { TIMES_A_TURN = 6 }; /* some 50 ms: many turns, and in some of them the meter reads something */

static void take_turns(void (*load)(void))
{
    char word;
    puts("ready");
    fflush(stdout);
    while (read(STDIN_FILENO, &word, 1) == 1) {
        double began = now();
        for (int i = 0; i < TIMES_A_TURN; i++)
            load();
        printf("%.9f\n", now() - began);
        fflush(stdout);
    }
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        void (*load)(void);
    } loads[] = {
        {"forks", forks},       {"threads", threads},       {"page-faults", faults},         {"switches", switches},
        {"files", files},       {"computes", computes},     {"reads-writes", reads_and_writes},
    };
    for (size_t i = 0; count > 1 && i < sizeof loads / sizeof *loads; i++)
        if (strcmp(words[1], loads[i].name) == 0) {
            stay_on_the_first_cpu();
            start_up(loads[i].load);
            take_turns(loads[i].load);
            return 0;
        }
    return 2;
}
