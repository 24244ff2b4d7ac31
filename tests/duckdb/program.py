"""What the program answers to many statements in one run."""

import subprocess

MARK = "end of answer "


def plinth(program, folder, statements, form):
    """Texts that answer statements in a format, csv or json; or what the program said."""
    text = ";\n".join(f"{q};\nSELECT '{MARK}{i}' AS mark" for i, q in enumerate(statements))
    done = subprocess.run([program, "sql", "--db", folder, "--format", form], input=text, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        return done.stderr.strip() or f"ended with {done.returncode}"
    answers, rest = [], done.stdout
    for i in range(len(statements)):
        mark = f'{{"mark":"{MARK}{i}"}}\n' if form == "json" else f"mark\n{MARK}{i}\n"
        answer, _, rest = rest.partition(mark)
        answers.append(answer)
    return answers


def answer_all(program, folder, statements, form):
    """For each statement a list of its answer's text, or the error: many by one process, as long as none fails."""
    if not statements:
        return []
    answers = plinth(program, folder, statements, form)
    if isinstance(answers, list):
        return [[answer] for answer in answers]
    if len(statements) == 1:
        return [answers]
    half = len(statements) // 2
    return answer_all(program, folder, statements[:half], form) + answer_all(program, folder, statements[half:], form)
