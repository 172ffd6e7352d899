/* What ds4.h promises, from a C program: arguments are the target, its drafter, and a folder to write to.
 * Prints what fails, and "passed" at the end. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "ds4/ds4.h"

enum { COUNT = 24, MOST = 15 };

static const int32_t PROMPT[] = {1, 5, 9, 12, 3, 44, 8};
#define PROMPT_COUNT (sizeof PROMPT / sizeof *PROMPT)

static ds4_engine* open_pair(const char* target, const char* drafter) {
    ds4_engine_options options = {0};
    ds4_engine* engine = NULL;
    options.drafter = drafter;
    options.device = "cpu";
    options.threads = 1;
    CHECK(ds4_engine_open(target, &options, &engine) == DS4_OK);
    return engine;
}

static ds4_session* open_session(ds4_engine* engine) {
    ds4_session* session = NULL;
    CHECK(ds4_session_open(engine, NULL, &session) == DS4_OK);
    return session;
}

static ds4_sampler* open_sampler(float temperature) {
    ds4_policy policy = {0, 0, 1.0f, 0};
    ds4_sampler* sampler = NULL;
    policy.temperature = temperature;
    CHECK(ds4_sampler_open(&policy, 7, &sampler) == DS4_OK);
    return sampler;
}

/* COUNT tokens after the prompt, `width` proposals a cycle; returns how many cycles it took. */
static int generate(ds4_session* session, ds4_sampler* sampler, int32_t width, int32_t* out) {
    int32_t proposals[MOST], k = 0, accepted = 0, anchor = 0, next = 0;
    int done = 0, cycles = 0;
    CHECK(ds4_prefill(session, PROMPT, PROMPT_COUNT) == DS4_OK);
    CHECK(ds4_sample(session, sampler, &anchor) == DS4_OK);
    out[done++] = anchor;
    for (; done < COUNT; cycles++) {
        if (width) CHECK(ds4_draft(session, anchor, sampler, proposals, &k) == DS4_OK);
        CHECK(ds4_verify(session, anchor, proposals, k < width ? k : width, NULL) == DS4_OK);
        CHECK(ds4_accept(session, sampler, &accepted, &next) == DS4_OK);
        CHECK(accepted <= width);
        CHECK(ds4_commit(session, accepted + 1) == DS4_OK);
        for (int i = 0; i < accepted && done < COUNT; i++) out[done++] = proposals[i];
        if (done < COUNT) out[done++] = next;
        anchor = next;
    }
    return cycles;
}

/* Greedy text is the same with any width, and sampled text comes to its end. */
static void test_cycles(ds4_engine* engine) {
    int32_t plain[COUNT], drafted[COUNT];
    for (int sampled = 0; sampled < 2; sampled++) {
        ds4_sampler* sampler = open_sampler(sampled ? 1.0f : 0.0f);
        ds4_session *a = open_session(engine), *b = open_session(engine);
        int cycles = generate(a, sampler, 0, plain);
        CHECK(cycles == COUNT - 1);
        CHECK(generate(b, sampler, ds4_block(engine), drafted) <= cycles);
        if (!sampled) CHECK(memcmp(plain, drafted, sizeof plain) == 0);
        for (int i = 0; i < COUNT; i++) CHECK(drafted[i] >= 0 && drafted[i] < ds4_vocab(engine));
        ds4_session_close(a);
        ds4_session_close(b);
        ds4_sampler_close(sampler);
    }
}

/* A session that was saved, or rewound, goes on as it would have. */
static void test_state(ds4_engine* engine, const char* folder) {
    char path[4096];
    const float* logits = NULL;
    ds4_session *session = open_session(engine), *again = NULL;
    size_t bytes = sizeof(float) * (size_t)ds4_vocab(engine);
    float* before = malloc(bytes);
    snprintf(path, sizeof path, "%s/state.ds4", folder);
    CHECK(ds4_prefill(session, PROMPT, PROMPT_COUNT) == DS4_OK);
    CHECK(ds4_logits(session, &logits) == DS4_OK);
    memcpy(before, logits, bytes);
    CHECK(ds4_session_save(session, path) == DS4_OK);
    CHECK(ds4_prefill(session, PROMPT, 3) == DS4_OK);
    CHECK(ds4_rewind(session, PROMPT_COUNT) == DS4_OK);
    CHECK(ds4_logits(session, &logits) == DS4_OK && memcmp(before, logits, bytes) == 0);
    CHECK(ds4_session_load(engine, path, &again) == DS4_OK && ds4_position(again) == (int64_t)PROMPT_COUNT);
    CHECK(ds4_logits(again, &logits) == DS4_OK && memcmp(before, logits, bytes) == 0);
    free(before);
    ds4_session_close(again);
    ds4_session_close(session);
}

/* Each kind of failure has its status and a text, and leaves things as they were. */
static void test_errors(ds4_engine* engine, const char* target, const char* drafter) {
    ds4_engine* none = (ds4_engine*)&none;
    ds4_engine_options options = {0};
    ds4_session* session = open_session(engine);
    ds4_sampler *sampler = open_sampler(0), *bad = NULL;
    ds4_policy policy = {-1, 0, 1, 0};
    int32_t outside = ds4_vocab(engine), token = 0;
    CHECK(ds4_engine_open("no/such/file.gguf", NULL, &none) == DS4_FORMAT && !none);
    CHECK(strstr(ds4_error(), "no/such/file.gguf"));
    CHECK(ds4_engine_open(drafter, NULL, &none) == DS4_FORMAT);
    CHECK(ds4_engine_open(NULL, NULL, &none) == DS4_REQUEST && strstr(ds4_error(), "target"));
    options.device = "abacus";
    CHECK(ds4_engine_open(target, &options, &none) == DS4_REQUEST && strstr(ds4_error(), "abacus"));
    CHECK(ds4_sampler_open(&policy, 0, &bad) == DS4_REQUEST && !bad);
    CHECK(ds4_sample(session, sampler, &token) == DS4_REQUEST);
    CHECK(ds4_prefill(session, &outside, 1) == DS4_REQUEST && ds4_position(session) == 0);
    CHECK(ds4_prefill(session, NULL, 1) == DS4_REQUEST && ds4_prefill(NULL, PROMPT, 1) == DS4_REQUEST);
    CHECK(ds4_prefill(session, PROMPT, PROMPT_COUNT) == DS4_OK);
    CHECK(ds4_commit(session, 1) == DS4_REQUEST);
    CHECK(ds4_accept(session, sampler, &token, &token) == DS4_REQUEST);
    CHECK(ds4_verify(session, 1, PROMPT, -1, NULL) == DS4_REQUEST);
    CHECK(ds4_verify(session, 1, PROMPT, 4, NULL) == DS4_OK && ds4_commit(session, 6) == DS4_REQUEST);
    CHECK(ds4_position(session) == (int64_t)PROMPT_COUNT);
    ds4_cancel(session);
    CHECK(ds4_verify(session, 1, PROMPT, 2, NULL) == DS4_CANCELLED);
    CHECK(ds4_accept(session, sampler, &token, &token) == DS4_REQUEST);
    ds4_cancel(session);
    CHECK(ds4_prefill(session, PROMPT, 2) == DS4_CANCELLED && ds4_position(session) == (int64_t)PROMPT_COUNT);
    CHECK(ds4_prefill(session, PROMPT, 2) == DS4_OK);
    ds4_sampler_close(sampler);
    ds4_session_close(session);
    ds4_session_close(NULL);
}

/* Proposals of the application's own, and a session that outlives its engine's handle. */
static void test_own_proposals(ds4_engine* engine) {
    ds4_session* session = open_session(engine);
    ds4_sampler* sampler = open_sampler(0);
    int32_t text[COUNT], wrong[2], accepted = 0, next = 0;
    const float* rows = NULL;
    generate(session, sampler, 0, text);
    ds4_engine_close(engine);
    CHECK(ds4_rewind(session, PROMPT_COUNT) == DS4_OK);
    CHECK(ds4_verify(session, text[0], text + 1, 3, &rows) == DS4_OK && isfinite(rows[0]));
    CHECK(ds4_accept(session, sampler, &accepted, &next) == DS4_OK && accepted == 3 && next == text[4]);
    wrong[0] = text[1];
    wrong[1] = text[2] ? 0 : 1;
    CHECK(ds4_verify(session, text[0], wrong, 2, NULL) == DS4_OK);
    CHECK(ds4_accept(session, sampler, &accepted, &next) == DS4_OK && accepted == 1 && next == text[2]);
    ds4_sampler_close(sampler);
    ds4_session_close(session);
}

/* Tokens of a draft that come again at a later frontier were not drawn there: each stands with its own probability. */
static void test_tokens_of_an_old_draft(ds4_engine* engine) {
    enum { TRIES = 400 };
    ds4_session* session = open_session(engine);
    ds4_sampler* sampler = open_sampler(1);
    int32_t proposals[MOST], accepted = 0, next = 0, stood = 0;
    const float* row = NULL;
    double sum, chance = 0;
    CHECK(ds4_prefill(session, PROMPT, PROMPT_COUNT) == DS4_OK);
    for (int i = 0; chance < 0.01 && i < TRIES; i++) {
        CHECK(ds4_rewind(session, PROMPT_COUNT) == DS4_OK);
        CHECK(ds4_draft(session, 4, sampler, proposals, NULL) == DS4_OK);
        CHECK(ds4_verify(session, 4, NULL, 0, NULL) == DS4_OK && ds4_commit(session, 1) == DS4_OK);
        CHECK(ds4_verify(session, 6, proposals, 1, &row) == DS4_OK);
        sum = 0;
        for (int32_t t = 0; t < ds4_vocab(engine); t++) sum += exp(row[t]);
        chance = exp(row[proposals[0]]) / sum;
    }
    CHECK(chance >= 0.01 && chance < 0.5);
    for (int i = 0; i < TRIES; i++) {
        CHECK(ds4_accept(session, sampler, &accepted, &next) == DS4_OK);
        stood += accepted;
    }
    CHECK(fabs(stood - TRIES * chance) < 6 * sqrt(TRIES * chance));
    ds4_sampler_close(sampler);
    ds4_session_close(session);
}

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    CHECK(strcmp(ds4_error(), "") == 0);
    ds4_engine* engine = open_pair(argv[1], argv[2]);
    CHECK(ds4_block(engine) > 0 && ds4_block(engine) <= MOST);
    test_cycles(engine);
    test_state(engine, argv[3]);
    test_errors(engine, argv[1], argv[2]);
    test_tokens_of_an_old_draft(engine);
    test_own_proposals(engine); /* closes the engine */
    puts("passed");
    return 0;
}
