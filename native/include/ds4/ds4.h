/* ds4.h: DeepSeek-V4 with speculative decoding, for applications in any language that can call C.
 *
 * Ids go in and ids come out; a tokenizer is the application's. One cycle of speculative decoding:
 *
 *     ds4_prefill(session, prompt, count);
 *     ds4_sample(session, sampler, &anchor);
 *     for (;;) {
 *         ds4_draft(session, anchor, sampler, proposals, &k);
 *         ds4_verify(session, anchor, proposals, k, NULL);
 *         ds4_accept(session, sampler, &accepted, &next);
 *         ds4_commit(session, accepted + 1);   // emits proposals[0 .. accepted), then next
 *         anchor = next;
 *     }
 *
 * With k = 0 it is plain decoding. Every function that can fail returns a ds4_status; ds4_error() says more. A session
 * and a sampler serve one thread at a time; engines serve any number. After an error or a cancel the state is as before
 * the call. Pointers to structs of options may be NULL: defaults.
 */
#ifndef DS4_H
#define DS4_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define DS4_API __declspec(dllexport)
#else
#define DS4_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ds4_status {
    DS4_OK = 0,
    DS4_REQUEST,   /* the caller: a bad argument, a full context */
    DS4_FORMAT,    /* a file is malformed, truncated, or not a model of ours */
    DS4_PAIR,      /* target and drafter do not fit together */
    DS4_BACKEND,   /* a device or its memory failed */
    DS4_CANCELLED, /* ds4_cancel */
    DS4_INTERNAL,  /* anything else */
} ds4_status;

/* What went wrong in this thread's latest call that failed; "" before. Valid until the thread's next failure. */
DS4_API const char* ds4_error(void);

/* A target and perhaps its drafter, in memory. Sessions keep it alive. */
typedef struct ds4_engine ds4_engine;

typedef struct ds4_engine_options {
    const char* drafter;  /* a DSpark drafter (GGUF); NULL for none */
    const char* device;   /* "auto", "cpu", "cuda:0", "hip:0", "metal", "vulkan:0", "rpc:HOST:PORT"; NULL is "auto" */
    const char* backends; /* folder of ggml's backend libraries, where a portable build has them apart; or NULL */
    int32_t threads;      /* CPU threads of a session; 0 takes the cores that are free */
} ds4_engine_options;

DS4_API ds4_status ds4_engine_open(const char* target, const ds4_engine_options* options, ds4_engine** engine);
DS4_API void ds4_engine_close(ds4_engine* engine); /* NULL is ignored, as by every close */
DS4_API int32_t ds4_vocab(const ds4_engine* engine);
/* Proposals of one draft; 0 without a drafter. */
DS4_API int32_t ds4_block(const ds4_engine* engine);

/* How tokens are drawn, and where the random numbers come from. */
typedef struct ds4_sampler ds4_sampler;

typedef struct ds4_policy {
    float temperature; /* 0 takes the likeliest token, and draws nothing */
    int32_t top_k;     /* the k largest logits; 0 is off */
    float top_p;       /* the shortest prefix of the sorted distribution that reaches p; 1 is off */
    float min_p;       /* none less likely than min_p times the likeliest; 0 is off */
} ds4_policy;

/* NULL is temperature 1 and nothing else. */
DS4_API ds4_status ds4_sampler_open(const ds4_policy* policy, uint64_t seed, ds4_sampler** sampler);
DS4_API void ds4_sampler_close(ds4_sampler* sampler);

/* One conversation. */
typedef struct ds4_session ds4_session;

typedef struct ds4_session_options {
    int64_t context; /* positions it can hold; 0 is 8192, or the model's length if that is less */
    int32_t kv_f32;  /* keys as F32 instead of F16 */
} ds4_session_options;

DS4_API ds4_status ds4_session_open(ds4_engine* engine, const ds4_session_options* options, ds4_session** session);
DS4_API ds4_status ds4_session_load(ds4_engine* engine, const char* path, ds4_session** session);
DS4_API ds4_status ds4_session_save(ds4_session* session, const char* path);
DS4_API void ds4_session_close(ds4_session* session);

/* The frontier: tokens in the state. An anchor comes next. */
DS4_API int64_t ds4_position(const ds4_session* session);
/* Extends the state by tokens. */
DS4_API ds4_status ds4_prefill(ds4_session* session, const int32_t* tokens, size_t count);
/* Draws what follows the last token in the state. */
DS4_API ds4_status ds4_sample(ds4_session* session, ds4_sampler* sampler, int32_t* token);
/* Logits [vocab] of what follows the last token in the state; valid until the session's next call. */
DS4_API ds4_status ds4_logits(ds4_session* session, const float** logits);
/* The state is shortened to a position. */
DS4_API ds4_status ds4_rewind(ds4_session* session, int64_t position);

/* Proposals [ds4_block] after an anchor that is not in the state yet; count, which may be NULL, gets how many. */
DS4_API ds4_status ds4_draft(ds4_session* session, int32_t anchor, ds4_sampler* sampler, int32_t* proposals,
                             int32_t* count);
/* Evaluates the anchor and k of 0 to 15 proposals after it: the latest draft's first k, or the application's own.
 * logits, which may be NULL, gets [k + 1, vocab], row 0 being what follows the anchor; valid until the next call. */
DS4_API ds4_status ds4_verify(ds4_session* session, int32_t anchor, const int32_t* proposals, int32_t k,
                              const float** logits);
/* How many of the verified proposals stand, and the token after them, so that what is emitted follows the sampler's
 * policy of the target exactly. The sampler is to be the draft's. Proposals other than those of a
 * draft at this frontier count as chosen without chance. */
DS4_API ds4_status ds4_accept(ds4_session* session, ds4_sampler* sampler, int32_t* accepted, int32_t* next);
/* Puts the first rows of the latest verify into the state: the anchor is one. */
DS4_API ds4_status ds4_commit(ds4_session* session, int32_t rows);

/* Stops the session's running call, or its next one, with DS4_CANCELLED. Any thread may call it. */
DS4_API void ds4_cancel(ds4_session* session);

#ifdef __cplusplus
}
#endif

#endif
