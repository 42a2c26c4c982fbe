/* A library libnvidia-ml.so.1 that reports what a file says: lines of `name value`, in the file NVML_STUB names.
 *
 * Each call reads the file anew, so that a test changes what the driver says while a job runs.
 *
 *   gpus 2                 how many there are; `init 9` is an error of nvmlInit
 *   hang 1                 every call blocks until the line is gone
 *   gpu0.busy 50           percent; `gpu0.busy !999` is the error 999 in its place
 *   gpu0.used, gpu0.total  bytes of memory
 *   gpu0.power             milliwatts
 *   gpu0.energy            millijoules; `gpu0.energy_rate` watts, of a counter that runs by itself
 *   gpu0.celsius, gpu0.clocks
 *   gpu0.pids 12:100,13:7  processes, each with its bytes; gpu0.sm 12:30,13:10 what each of them uses, in percent
 *   gpu0.mig 2             that GPU is divided into two instances, called gpu0.0 and gpu0.1 here
 *   gpu0.lost 1            it has fallen off the bus
 *
 * With -DOLD it is a driver of 2019: without counters of energy, samples of processes, and newer names of functions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, IS_LOST = 15, MOST = 64 };

typedef struct device { char name[32]; int number; int instance; } device;
typedef struct { unsigned int pid; unsigned long long used; unsigned int gpu, compute; } process;
typedef struct { unsigned int pid; unsigned long long time; unsigned int sm, memory, encoder, decoder; } sample;

static device devices[8 * 9];

static int look(const char *name, char *value, int size) {
    FILE *file = fopen(getenv("NVML_STUB"), "r");
    char line[4096];
    size_t length = strlen(name);
    int found = 0;
    if (!file) return 0;
    while (fgets(line, sizeof line, file))
        if (!strncmp(line, name, length) && line[length] == ' ') {
            snprintf(value, size, "%s", line + length + 1);
            value[strcspn(value, "\n")] = 0;
            found = 1;
        }
    fclose(file);
    return found;
}

static void maybe_hang(void) {
    char value[32];
    while (look("hang", value, sizeof value)) usleep(5000);
}

static int of(device *d, const char *what, char *value, int size) {
    char name[96];
    maybe_hang();
    snprintf(name, sizeof name, "gpu%d.lost", d->number);
    if (look(name, value, size)) return IS_LOST;
    snprintf(name, sizeof name, "%s.%s", d->name, what);
    if (!look(name, value, size)) return NOT_SUPPORTED;
    return value[0] == '!' ? atoi(value + 1) : SUCCESS;
}

static int number(device *d, const char *what, unsigned long long *result) {
    char value[4096];
    int error = of(d, what, value, sizeof value);
    if (!error) *result = strtoull(value, 0, 0);
    return error;
}

static int small(device *d, const char *what, unsigned int *result) {
    unsigned long long value = 0;
    int error = number(d, what, &value);
    if (!error) *result = (unsigned int)value;
    return error;
}

int nvmlInitWithFlags(unsigned int flags) {
    char value[32];
    (void)flags;
    maybe_hang();
    return look("init", value, sizeof value) ? atoi(value) : SUCCESS;
}

int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int error) { return error == 999 ? "Unknown Error" : error == 9 ? "Driver Not Loaded" : "?"; }

int nvmlDeviceGetCount_v2(unsigned int *count) {
    char value[32];
    maybe_hang();
    *count = look("gpus", value, sizeof value) ? atoi(value) : 0;
    return SUCCESS;
}

static device *numbered(int number, int instance) {
    device *d = &devices[number * 9 + instance + 1];
    d->number = number;
    d->instance = instance;
    if (instance < 0) snprintf(d->name, sizeof d->name, "gpu%d", number);
    else snprintf(d->name, sizeof d->name, "gpu%d.%d", number, instance);
    return d;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, device **d) {
    *d = numbered(index, -1);
    return SUCCESS;
}

int nvmlDeviceGetUUID(device *d, char *text, unsigned int size) {
    if (d->instance < 0) snprintf(text, size, "GPU-%d0000000", d->number);
    else snprintf(text, size, "MIG-%d%d000000", d->number, d->instance);
    return SUCCESS;
}

int nvmlDeviceGetName(device *d, char *text, unsigned int size) {
    snprintf(text, size, "Stub %s", d->name);
    return SUCCESS;
}

int nvmlDeviceGetMigMode(device *d, unsigned int *current, unsigned int *pending) {
    char value[32];
    int error = of(d, "mig", value, sizeof value);
    if (error) return error;
    *current = *pending = 1;
    return SUCCESS;
}

int nvmlDeviceGetMaxMigDeviceCount(device *d, unsigned int *count) { return small(d, "mig", count); }

int nvmlDeviceGetMigDeviceHandleByIndex(device *d, unsigned int index, device **part) {
    unsigned int count = 0;
    int error = small(d, "mig", &count);
    if (error || index >= count) return error ? error : NOT_FOUND;
    *part = numbered(d->number, index);
    return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(device *d, unsigned int *rates) {
    rates[1] = 0;
    return small(d, "busy", &rates[0]);
}

int nvmlDeviceGetMemoryInfo(device *d, unsigned long long *memory) { /* total, free, used */
    int error = number(d, "total", &memory[0]);
    if (!error) error = number(d, "used", &memory[2]);
    memory[1] = memory[0] - memory[2];
    return error;
}

int nvmlDeviceGetPowerUsage(device *d, unsigned int *milliwatts) { return small(d, "power", milliwatts); }

int nvmlDeviceGetTemperature(device *d, int sensor, unsigned int *celsius) {
    (void)sensor;
    return small(d, "celsius", celsius);
}

/* `pid:amount,pid:amount` into two columns; returns how many. */
static int pairs(char *text, unsigned int *pids, unsigned long long *amounts) {
    int count = 0;
    for (char *word = strtok(text, ","); word && count < MOST; word = strtok(0, ",")) {
        char *colon = strchr(word, ':');
        pids[count] = strtoul(word, 0, 10);
        amounts[count++] = colon ? strtoull(colon + 1, 0, 10) : ~0ULL; /* not available */
    }
    return count;
}

static int list(device *d, const char *what, unsigned int *pids, unsigned long long *amounts, int *count) {
    char value[4096];
    int error = of(d, what, value, sizeof value);
    if (error) return error;
    *count = pairs(value, pids, amounts);
    return SUCCESS;
}

/* A byte more in the file NVML_STUB.asked, so that a job knows how often it was looked at. */
static void note(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s.asked", getenv("NVML_STUB"));
    FILE *file = fopen(path, "a");
    if (file) {
        fputc('.', file);
        fclose(file);
    }
}

static int running(device *d, unsigned int *count, process *processes) {
    unsigned int pids[MOST];
    unsigned long long amounts[MOST];
    int found = 0, error = list(d, "pids", pids, amounts, &found);
    note();
    if (error) return error;
    if (!found || *count < (unsigned)found || !processes) {
        *count = found;
        return found ? INSUFFICIENT_SIZE : SUCCESS;
    }
    for (int i = 0; i < found; i++) processes[i] = (process){pids[i], amounts[i], -1, -1};
    *count = found;
    return SUCCESS;
}

#ifdef OLD
int nvmlDeviceGetComputeRunningProcesses_v2(device *d, unsigned int *count, process *p) { return running(d, count, p); }
int nvmlDeviceGetCurrentClocksThrottleReasons(device *d, unsigned long long *bits) { return number(d, "clocks", bits); }
#else
int nvmlDeviceGetComputeRunningProcesses_v3(device *d, unsigned int *count, process *p) { return running(d, count, p); }
int nvmlDeviceGetCurrentClocksEventReasons(device *d, unsigned long long *bits) { return number(d, "clocks", bits); }

int nvmlDeviceGetTotalEnergyConsumption(device *d, unsigned long long *millijoules) {
    struct timespec now;
    unsigned long long watts = 0;
    if (number(d, "energy_rate", &watts)) return number(d, "energy", millijoules);
    clock_gettime(CLOCK_MONOTONIC, &now);
    *millijoules = watts * (now.tv_sec * 1000ULL + now.tv_nsec / 1000000);
    return SUCCESS;
}

int nvmlDeviceGetProcessUtilization(device *d, sample *samples, unsigned int *count, unsigned long long since) {
    unsigned int pids[MOST];
    unsigned long long amounts[MOST];
    int found = 0, error = list(d, "sm", pids, amounts, &found);
    (void)since;
    if (error) return error;
    if (!found) return NOT_FOUND;
    if (!samples || *count < (unsigned)found) {
        *count = found;
        return INSUFFICIENT_SIZE;
    }
    for (int i = 0; i < found; i++) samples[i] = (sample){pids[i], time(0) * 1000000ULL, (unsigned)amounts[i], 0, 0, 0};
    *count = found;
    return SUCCESS;
}
#endif
