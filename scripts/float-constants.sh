#!/bin/sh
# Lists the float literals of the statistical models that nobody can trace: those outside of a const with a doc
# comment, and outside of the value of a parameter struct whose fields have doc comments. Tests, comments and strings
# don't count, nor do 0, 1/2, 1, 2, 10, 100, 1e6 and 1e9. Exits with 1 if there are any.
# Usage: scripts/float-constants.sh [FOLDER...]
cd "$(dirname "$0")/.." || exit 2
[ $# -gt 0 ] || set -- genomics/pair/src genomics/somatic/src
exec python3 - "$@" <<'PYTHON'
import pathlib, re, sys

PLAIN = {0.0, 0.5, 1.0, 2.0, 10.0, 100.0, 1e6, 1e9}
FLOAT = re.compile(r'(?<!\w)(?<![^.]\.)(\d[\d_]*\.\d[\d_]*(?:e[-+]?\d+)?|\d[\d_]*e[-+]?\d+|\d[\d_]*(?=f(?:32|64)\b))(?:_?f(?:32|64))?(?!\w)')
CONST = re.compile(r'\s*(?:pub(?:\([a-z]+\))? )?(?:const|static) (\w+)\s*:[^=]*=\s*(\w+)?')


def without_strings(line):
    line = re.sub(r'b?"(?:\\.|[^"\\])*"', '""', line)
    return re.sub(r"b?'(?:\\.|[^'\\])'", "' '", line).split('//')[0]


def fields_without_docs(lines, struct):
    start = next((i for i, l in enumerate(lines) if re.match(rf'(?:pub(?:\([a-z]+\))? )?struct {struct}\b', l)), None)
    if start is None:
        return []
    found = []
    for i in range(start + 1, len(lines)):
        if lines[i].startswith('}'):
            break
        field = re.match(r'    (?:pub(?:\([a-z]+\))? )?(\w+):', lines[i])
        if field and not lines[i - 1].lstrip().startswith('///'):
            found.append((i, f'field {field[1]} of {struct} has no doc comment'))
    return found


def check(path):
    lines = path.read_text(encoding='utf-8').split('\n')
    end = next((i for i, l in enumerate(lines) if l.startswith('#[cfg(test)]')), len(lines))
    found, documented, i = [], False, 0
    while i < end:
        line = lines[i]
        text = line.strip()
        if text.startswith('//'):
            documented = text.startswith('///')
            i += 1
            continue
        const = CONST.match(line)
        if const and documented:
            depth, first = 0, i
            while True:
                code = without_strings(lines[i])
                depth += sum(code.count(c) for c in '([{') - sum(code.count(c) for c in ')]}')
                if depth <= 0 and code.rstrip().endswith(';'):
                    break
                i += 1
            if const[2] and '{' in lines[first]:
                found += fields_without_docs(lines, const[2])
        else:
            code = without_strings(line)
            found += [(i, f'{m[0]}: {text}') for m in FLOAT.finditer(code) if float(m[1].replace('_', '')) not in PLAIN]
        documented = documented and text.startswith('#[')
        i += 1
    return [f'{path}:{i + 1}: {what}' for i, what in found]


files = [f for folder in sys.argv[1:] for f in sorted(pathlib.Path(folder).rglob('*.rs')) if f.name != 'tests.rs']
found = [line for f in files for line in check(f)]
print('\n'.join(found))
sys.exit(1 if found else 0)
PYTHON
