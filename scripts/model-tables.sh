#!/bin/sh
# Writes the parameter tables of docs/model/*.md from the doc comments and values of the parameter structs in the code.
# Usage: scripts/model-tables.sh [--check]     --check: changes nothing, exits with 1 if a table differs from the code
cd "$(dirname "$0")/.." || exit 2
exec python3 - "$@" <<'PYTHON'
import pathlib, re, sys

PAGES = {
    'identity': 'genomics/pair/src/identity.rs',
    'contamination': 'genomics/pair/src/contamination_params.rs',
    'purity_ploidy': 'genomics/pair/src/purity_params.rs',
    'tumor_in_normal': 'genomics/somatic/src/tumour_in_normal.rs',
    'msi': 'genomics/somatic/src/msi.rs',
    'error_model': 'genomics/somatic/src/sequencing_errors.rs',
    'event': 'genomics/somatic/src/event_model.rs',
    'genotype': 'genomics/somatic/src/genotype_params.rs',
    'slippage': 'genomics/somatic/src/slippage.rs',
    'signatures': 'genomics/somatic/src/signatures.rs',
}
HEAD = '| name in code | meaning | value | unit | source | effect of raising it |\n|---|---|---|---|---|---|\n'
DOC = re.compile(r'(.*)\. Unit: (.*?)\. Source: (.*)\. If higher: (.*)\.$')


def parameters(code):
    struct = re.search(r'struct (\w+ModelParams) \{\n(.*?)\n\}', code, re.S)
    values = re.search(rf'const [A-Z_]+: {struct[1]} = {struct[1]} \{{\n(.*?)\n\}};', code, re.S)[1]
    value = {m[1]: ' '.join(m[2].split()).replace(', ]', ']').replace('[ ', '[') for m in re.finditer(r'(?m)^    (\w+): (.*?),$(?=\n    \w+:|\Z)', values, re.S)}
    for field in re.finditer(r'((?:    ///[^\n]*\n)+)    pub\(crate\) (\w+):', struct[2] + '\n'):
        text = ' '.join(line.strip()[3:].strip() for line in field[1].strip().split('\n'))
        doc = DOC.match(text)
        if not doc:
            sys.exit(f'{struct[1]}::{field[2]}: the doc comment is not of the form "MEANING. Unit: U. Source: S. If higher: E."')
        yield field[2], value[field[2]], *doc.groups()


def table(code):
    rows = HEAD
    for name, value, meaning, unit, source, effect in parameters(code):
        value = re.sub(r'(?:genotype(?:_params)?::)?[A-Z_]+_PARAMS\.', '', value.replace('std::f64::consts::', ''))
        meaning = meaning if meaning[:2].isupper() else meaning[0].lower() + meaning[1:]
        cells = [f'`{name}`', meaning, value if len(value) <= 120 else 'see the code', unit, source, effect]
        rows += '| ' + ' | '.join(cell.replace('|', '\\|') for cell in cells) + ' |\n'
    return rows


stale = []
for page, source in PAGES.items():
    path = pathlib.Path('docs/model', page + '.md')
    old = path.read_text(encoding='utf-8')
    new = re.sub(r'(?ms)^\| name in code \|.*?\n(?=\n)', lambda _: table(pathlib.Path(source).read_text(encoding='utf-8')), old, count=1)
    if new != old:
        stale.append(str(path))
        if '--check' not in sys.argv:
            path.write_text(new, encoding='utf-8')
if '--check' in sys.argv and stale:
    sys.exit('differs from the code, run scripts/model-tables.sh: ' + ', '.join(stale))
PYTHON
