"""User processor seconds of each question of questions.py, of two binaries in turn: the ratio of the least of each, and
the least and the largest ratio of pairs, between which noise moves it. Below 20 ms the system's clock ticks say nothing:
instructions.py does. Usage: against.py BINARY OLD_BINARY [QUESTION...]"""
import sys

from questions import QUESTIONS, user_seconds, words

PAIRS = 5


def main():
    binary, old, *asked = sys.argv[1:]
    print(f"{'question':<20} {'before':>8} {'now':>8} {'ratio':>6}  pairs")
    for question in asked or QUESTIONS:
        pairs = [(user_seconds(words(old, question)), user_seconds(words(binary, question))) for _ in range(PAIRS)]
        before, now = (min(side) for side in zip(*pairs))
        if min(before, now) < 0.02:
            print(f"{question:<20} {before:>7.3f}s {now:>7.3f}s   too short to compare", flush=True)
            continue
        ratios = sorted(b / a for a, b in pairs)
        print(f"{question:<20} {before:>7.3f}s {now:>7.3f}s {now / before:>6.2f}  {ratios[0]:.2f} to {ratios[-1]:.2f}",
              flush=True)


main()
