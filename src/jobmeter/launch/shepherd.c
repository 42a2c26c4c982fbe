/* The shepherd: the small process between jobmeter and a job.
 *
 *     shepherd CONTROL STATUS DIRECTORY PROGRAM ARGV0 [ARG...]
 *
 * It starts the job behind a gate, adopts the processes the job orphans, and
 * tells what each of them used. It exists because of three kernel facts:
 *
 *   - ru_maxrss of a process begins at the size of the one that forked it.
 *     Forked from here, that is a few dozen kilobytes and not a Python's.
 *   - A subreaper adopts every orphan below it. One shepherd a job tells whose
 *     orphan it is, and leaves the process that called jobmeter unchanged.
 *   - What a process used is added to the parent that waits for it. So
 *     /proc/<shepherd>/{stat,io} sum up the job when it is over.
 *
 * shepherd.py speaks the same protocol in Python, for machines this file was
 * not compiled for. No libc: nothing here may cost memory or start-up time.
 *
 * Build (the result is committed beside this file): see Makefile, `make shepherd`.
 */
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/signal.h>
#include <linux/wait.h>
#include <asm/unistd.h>
#include <asm/fcntl.h>

#define CLONE_FLAGS 17 /* SIGCHLD and nothing shared: a plain fork */
#define EINTR 4
#define EPIPE 32

/* What goes through STATUS. Keep in step with protocol.py. */
enum { READY = 1, FAILED = 2, EXITED = 3, REAPED = 4 };
struct message {
    int kind, pid, value, unused;
    long user_us, system_us, maxrss_kib, minor_faults, major_faults;
    long voluntary_switches, involuntary_switches;
};

#if defined(__x86_64__)
static long call(long n, long a, long b, long c, long d, long e)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    __asm__ volatile("syscall" : "=a"(result)
                     : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
}
__asm__(".globl _start\n_start: mov %rsp, %rdi\n and $-16, %rsp\n call shepherd\n");
#elif defined(__aarch64__)
static long call(long n, long a, long b, long c, long d, long e)
{
    register long x8 __asm__("x8") = n;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
}
__asm__(".globl _start\n_start: mov x0, sp\n bl shepherd\n");
#endif

static int number(const char *text)
{
    int n = 0;
    while (*text)
        n = n * 10 + (*text++ - '0');
    return n;
}

/* A reader that died is not the job's concern: errors are ignored. */
static void tell(int status, int kind, int pid, int value, const struct rusage *used)
{
    struct message m = {.kind = kind, .pid = pid, .value = value};
    if (used) {
        m.user_us = used->ru_utime.tv_sec * 1000000L + used->ru_utime.tv_usec;
        m.system_us = used->ru_stime.tv_sec * 1000000L + used->ru_stime.tv_usec;
        m.maxrss_kib = used->ru_maxrss;
        m.minor_faults = used->ru_minflt;
        m.major_faults = used->ru_majflt;
        m.voluntary_switches = used->ru_nvcsw;
        m.involuntary_switches = used->ru_nivcsw;
    }
    call(__NR_write, status, (long)&m, sizeof m, 0, 0);
}

/* Wait for jobmeter's word; 0 when it is gone. */
static int await_word(int control)
{
    char word;
    long got;
    do
        got = call(__NR_read, control, (long)&word, 1, 0, 0);
    while (got == -EINTR);
    return got == 1;
}

enum { DEFAULT = 0, IGNORE = 1 }; /* SIG_DFL, SIG_IGN */

static void dispose(int signal, long handler)
{
    /* struct sigaction of the kernel begins with the handler; no flags, no mask */
    long action[8] = {handler};
    call(__NR_rt_sigaction, signal, (long)action, 0, 8, 0);
}

static int is_ignored(int signal)
{
    long action[8] = {DEFAULT};
    call(__NR_rt_sigaction, signal, 0, (long)action, 8, 0);
    return action[0] == IGNORE;
}

static void become_the_job(int control, int status, int ignores_children, char **argv, char **environment)
{
    long failed = 0;
    int self = call(__NR_getpid, 0, 0, 0, 0, 0);
    call(__NR_fcntl, control, F_SETFD, FD_CLOEXEC, 0, 0);
    call(__NR_fcntl, status, F_SETFD, FD_CLOEXEC, 0, 0);
    /* glibc's posix_spawn leaves its two internal signals ignored; a shell would not. */
    dispose(32, DEFAULT);
    dispose(33, DEFAULT);
    if (ignores_children)
        dispose(SIGCHLD, IGNORE);
    if (argv[3][0])
        failed = call(__NR_chdir, (long)argv[3], 0, 0, 0, 0);
    tell(status, READY, self, 0, 0);
    if (!await_word(control))
        call(__NR_exit_group, 125, 0, 0, 0, 0);
    if (!failed)
        failed = call(__NR_execve, (long)argv[4], (long)(argv + 5), (long)environment, 0, 0);
    tell(status, FAILED, self, (int)-failed, 0);
    call(__NR_exit_group, 127, 0, 0, 0, 0);
}

__attribute__((used)) void shepherd(long *stack)
{
    char **argv = (char **)(stack + 1);
    char **environment = argv + stack[0] + 1;
    int control = number(argv[1]), status = number(argv[2]);
    int ignores_children = is_ignored(SIGCHLD);
    long job;

    /* Children of who ignores SIGCHLD cannot be waited for. The job has it as our caller had. */
    dispose(SIGCHLD, DEFAULT);
    call(__NR_prctl, PR_SET_NAME, (long)"jobmeter-job", 0, 0, 0);
    call(__NR_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    job = call(__NR_clone, CLONE_FLAGS, 0, 0, 0, 0);
    if (job == 0)
        become_the_job(control, status, ignores_children, argv, environment);
    if (job < 0) {
        tell(status, FAILED, 0, (int)-job, 0);
        call(__NR_exit_group, 125, 0, 0, 0, 0);
    }
    /* Ctrl-C, a hang-up and the like are for the job; its accounts outlive them. It stops with the job. */
    for (int signal = 1; signal <= 64; signal++)
        if (signal != SIGCHLD && signal != SIGTSTP && signal != SIGTTIN && signal != SIGTTOU && signal != SIGCONT)
            dispose(signal, IGNORE); /* refused for SIGKILL and SIGSTOP */
    /* The job's stdin, stdout and stderr are not held open from here. */
    for (int fd = 0; fd < 3; fd++)
        call(__NR_close, fd, 0, 0, 0, 0);

    for (;;) {
        int info[32]; /* siginfo_t: si_pid is the int at byte 16 on 64-bit Linux */
        struct rusage used;
        int state;
        long got = call(__NR_waitid, P_ALL, 0, (long)info, WEXITED | WNOWAIT, 0);
        if (got == -EINTR)
            continue;
        if (got < 0)
            break;
        if (info[4] == job) {
            /* A last look at the zombie before its accounts are closed. */
            tell(status, EXITED, (int)job, 0, 0);
            await_word(control);
        }
        if (call(__NR_wait4, info[4], (long)&state, 0, (long)&used, 0) > 0)
            tell(status, REAPED, info[4], state, &used);
    }
    /* Every descendant has ended: hold the accounts open until they are read. */
    call(__NR_close, status, 0, 0, 0, 0);
    await_word(control);
    call(__NR_exit_group, 0, 0, 0, 0, 0);
}
