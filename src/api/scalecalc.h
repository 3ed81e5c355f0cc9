/* scalecalc from other programs: a question as the words of a command line, the answer as what the program would have
 * written. Stable: functions are added, none changes. docs/api.md shows C++, Python and CMake around it. */
#ifndef SCALECALC_H
#define SCALECALC_H

#if defined(__GNUC__)
#define SCALECALC_API __attribute__((visibility("default")))
#else
#define SCALECALC_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct scalecalc_answer scalecalc_answer;

/* Asks what `scalecalc WORD...` asks, in this process; the words without the program's name. Never null but for want of
 * memory. Threads may ask at the same time, whatever their stacks. Signals, umask and limits of the process are left
 * alone: --time-limit ends this question, --memory-limit is refused. A process that was forked off while others asked
 * is refused (status 71); one that was forked off between questions answers. */
SCALECALC_API scalecalc_answer* scalecalc_ask(int count, const char* const* words);

/* The exit status of the program: 0 answered, 1 a check failed, 2 a wrong question, 3 nothing fits, ... (manual). */
SCALECALC_API int scalecalc_status(const scalecalc_answer* answer);
/* What would have gone to standard output and to standard error; UTF-8, valid until the answer is freed. */
SCALECALC_API const char* scalecalc_output(const scalecalc_answer* answer);
SCALECALC_API const char* scalecalc_messages(const scalecalc_answer* answer);
SCALECALC_API void scalecalc_free(scalecalc_answer* answer);

/* "0.1.0" */
SCALECALC_API const char* scalecalc_version(void);

#ifdef __cplusplus
}
#endif
#endif
