/* Two threads with sessions of their own on one remote device: arguments are the target and "rpc:HOST:PORT".
 * Prints what fails, and "passed" at the end. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "ds4/ds4.h"

enum { THREADS = 2, STEPS = 24, SESSIONS = 3 };

typedef struct work {
    const char *target, *device;
    ds4_engine* shared; /* NULL: the thread opens one */
    int32_t offset;     /* what its tokens begin with */
    float* logits;      /* [STEPS, vocab] of its latest session */
} work;

static ds4_engine* open_engine(const char* target, const char* device) {
    ds4_engine_options options = {0};
    ds4_engine* engine = NULL;
    options.device = device;
    options.threads = 1;
    CHECK(ds4_engine_open(target, &options, &engine) == DS4_OK);
    return engine;
}

/* Opens sessions one after another, and steps each of them token by token. */
static void* run(void* argument) {
    work* w = argument;
    ds4_engine* engine = w->shared ? w->shared : open_engine(w->target, w->device);
    ds4_session_options options = {0};
    options.context = 64;
    for (int i = 0; i < SESSIONS; i++) {
        ds4_session* session = NULL;
        CHECK(ds4_session_open(engine, &options, &session) == DS4_OK);
        for (int32_t step = 0; step < STEPS; step++) {
            const int32_t token = 1 + (w->offset + step * 7) % 100;
            const float* row = NULL;
            CHECK(ds4_verify(session, token, NULL, 0, &row) == DS4_OK);
            memcpy(w->logits + (size_t)step * ds4_vocab(engine), row, sizeof *row * ds4_vocab(engine));
            CHECK(ds4_commit(session, 1) == DS4_OK);
        }
        ds4_session_close(session);
    }
    if (!w->shared) ds4_engine_close(engine);
    return NULL;
}

/* Each thread computes what it computes alone; `shared`: in one engine for both. */
static void test_threads(const char* target, const char* device, int shared) {
    ds4_engine* engine = open_engine(target, device);
    const size_t count = (size_t)STEPS * ds4_vocab(engine);
    work alone[THREADS], together[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        work w = {target, device, shared ? engine : NULL, i * 31, NULL};
        alone[i] = together[i] = w;
        alone[i].logits = calloc(count, sizeof(float));
        together[i].logits = calloc(count, sizeof(float));
        CHECK(alone[i].logits && together[i].logits);
        run(&alone[i]);
    }
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, run, &together[i]) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < THREADS; i++) {
        CHECK(memcmp(alone[i].logits, together[i].logits, count * sizeof(float)) == 0);
        free(alone[i].logits);
        free(together[i].logits);
    }
    ds4_engine_close(engine);
}

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    test_threads(argv[1], argv[2], 1);
    test_threads(argv[1], argv[2], 0);
    printf("passed\n");
    return 0;
}
