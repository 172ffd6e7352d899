/* Generates text by the cycle that ds4.h describes, and times it: the other side of bench/overhead.py.
 *
 * Arguments: target, drafter (or "-"), device, threads, context. Each line of input is one text to generate on a session
 * that is emptied first: seed, temperature, draft length, how many tokens, how many ids the prompt has, and the ids. Answers
 * with one line: the seconds that the tokens took, without the prompt's, by the clock and by the processor, the number of
 * cycles, and the tokens. */
#define _POSIX_C_SOURCE 199309L /* clock_gettime */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ds4/ds4.h"

enum { MAX_DRAFT_LENGTH = 15 };

typedef struct text {
    uint64_t seed;
    float temperature;
    int32_t draft_length, count, prompt_count;
    int32_t *tokens, *prompt;
} text;

static void fail(const char* what) {
    fprintf(stderr, "ds4_loop: %s\n", what);
    exit(2);
}

static void must(ds4_status status) {
    if (status != DS4_OK) fail(ds4_error());
}

static double seconds(clockid_t clock) {
    struct timespec found;
    clock_gettime(clock, &found);
    return (double)found.tv_sec + 1e-9 * (double)found.tv_nsec;
}

static int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }

static int32_t* ids(int32_t count) {
    int32_t* made = count < 0 ? NULL : malloc(sizeof *made * ((size_t)count + 1));
    if (!made) fail("a count is negative, or there is no memory");
    return made;
}

/* The cycles of one text after its first token; returns how many. */
static int32_t cycles(ds4_session* session, ds4_sampler* sampler, const text* asked) {
    int32_t proposals[MAX_DRAFT_LENGTH], accepted = 0, next = 0, made = 0;
    int32_t* tokens = asked->tokens;
    for (int32_t done = 1; done < asked->count; made++) {
        const int32_t anchor = tokens[done - 1];
        int32_t k = least(asked->draft_length, asked->count - done - 1), drafted = 0;
        if (k) {
            must(ds4_draft(session, anchor, sampler, proposals, &drafted));
            k = least(k, drafted);
        }
        must(ds4_verify(session, anchor, proposals, k, NULL));
        must(ds4_accept(session, sampler, &accepted, &next));
        must(ds4_commit(session, accepted + 1));
        memcpy(tokens + done, proposals, sizeof *tokens * (size_t)accepted);
        tokens[done + accepted] = next;
        done += accepted + 1;
    }
    return made;
}

static void generate(ds4_session* session, const text* asked) {
    const ds4_policy policy = {asked->temperature, 0, 1.0f, 0};
    ds4_sampler* sampler = NULL;
    must(ds4_sampler_open(&policy, asked->seed, &sampler));
    must(ds4_rewind(session, 0));
    must(ds4_prefill(session, asked->prompt, (size_t)asked->prompt_count));
    const double begin = seconds(CLOCK_MONOTONIC), busy = seconds(CLOCK_PROCESS_CPUTIME_ID);
    must(ds4_sample(session, sampler, &asked->tokens[0]));
    const int32_t made = cycles(session, sampler, asked);
    printf("%.9f %.9f %d", seconds(CLOCK_MONOTONIC) - begin, seconds(CLOCK_PROCESS_CPUTIME_ID) - busy, made);
    for (int32_t i = 0; i < asked->count; i++) printf(" %d", asked->tokens[i]);
    printf("\n");
    fflush(stdout);
    ds4_sampler_close(sampler);
}

/* The next line of input; 0 at its end. */
static int read_text(text* asked) {
    unsigned long long seed;
    if (scanf("%llu %f %d %d %d", &seed, &asked->temperature, &asked->draft_length, &asked->count, &asked->prompt_count) != 5)
        return 0;
    if (asked->count < 1 || asked->draft_length < 0 || asked->draft_length > MAX_DRAFT_LENGTH) fail("wanted 1 token or more, and a draft length to 15");
    asked->seed = seed;
    asked->tokens = ids(asked->count);
    asked->prompt = ids(asked->prompt_count);
    for (int32_t i = 0; i < asked->prompt_count; i++)
        if (scanf("%d", &asked->prompt[i]) != 1) fail("the prompt is shorter than it says");
    return 1;
}

int main(int argc, char** argv) {
    if (argc != 6) fail("wanted target, drafter or -, device, threads and context");
    const ds4_engine_options options = {strcmp(argv[2], "-") ? argv[2] : NULL, argv[3], NULL, atoi(argv[4])};
    const ds4_session_options size = {atoll(argv[5]), 0};
    ds4_engine* engine = NULL;
    ds4_session* session = NULL;
    text asked;
    must(ds4_engine_open(argv[1], &options, &engine));
    must(ds4_session_open(engine, &size, &session));
    while (read_text(&asked)) {
        generate(session, &asked);
        free(asked.tokens);
        free(asked.prompt);
    }
    ds4_session_close(session);
    ds4_engine_close(engine);
    return 0;
}
