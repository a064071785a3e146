"""Runs notebooks from their first cell to their last, each in a kernel of its own.

    run.py check NOTEBOOK...     compares what comes out with what is stored
    run.py update NOTEBOOK...    stores it

Numbers are compared to the digits that are shown: they may differ by one in the last of them, integers not at all.
Figures must be well-formed and have the same elements, words and classes; coordinates may differ by half a pixel.
The last line is `N passed, M failed`, a check for each cell and one for the notebook.
"""

import concurrent.futures
import os
import re
import sys
import xml.etree.ElementTree as ElementTree

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError

NUMBER = re.compile(r'(?<![\w.])-?\d+(?:\.\d*)?(?:e[-+]?\d+)?', re.I)


def unit(number):
    """One in the last digit that is shown; 0 for an integer."""
    mantissa, _, exponent = number.lower().partition('e')
    point = mantissa.partition('.')
    if not point[1] and not exponent:
        return 0.0
    return 10.0 ** (int(exponent or 0) - len(point[2]))


def same_text(ours, stored):
    words = lambda text: NUMBER.sub('#', ' '.join(re.sub(r'([\[\](,)])', r' \1 ', text).split()))
    if words(ours) != words(stored):
        return False
    return all(abs(float(a) - float(b)) <= 1.001 * max(unit(a), unit(b))
               for a, b in zip(NUMBER.findall(ours), NUMBER.findall(stored)))


def figure_fault(ours, stored):
    try:
        pairs = [(ElementTree.fromstring(ours), ElementTree.fromstring(stored))]
    except ElementTree.ParseError as e:
        return f'a figure is not well-formed: {e}'
    while pairs:
        a, b = pairs.pop()
        if a.tag != b.tag or len(a) != len(b) or a.attrib.keys() != b.attrib.keys():
            return f'a figure has other elements at <{a.tag.rpartition("}")[2]}>'
        if not same_text(a.text or '', b.text or ''):
            return f"a figure says '{(a.text or '').strip()}', stored is '{(b.text or '').strip()}'"
        for name in a.attrib:
            x, y = a.attrib[name], b.attrib[name]
            if NUMBER.sub('#', x) != NUMBER.sub('#', y) or name == 'class' and x != y:
                return f'a figure has {name}={x!r}, stored is {y!r}'
            if any(abs(float(p) - float(q)) > 0.5 for p, q in zip(NUMBER.findall(x), NUMBER.findall(y))):
                return f'a figure has {name}={x!r}, stored is {y!r}'
        pairs += zip(a, b)
    return ''


def merged(outputs):
    """Pieces of one stream that follow each other are one."""
    result = []
    for output in outputs:
        if output.output_type == 'stream' and result and result[-1].get('name') == output.name:
            result[-1]['text'] += output.text
        else:
            result.append(nbformat.from_dict(dict(output)))
    return result


def output_fault(ours, stored):
    if len(ours) != len(stored):
        return f'{len(ours)} outputs, stored are {len(stored)}'
    for a, b in zip(ours, stored):
        if a.output_type != b.output_type or a.get('name') != b.get('name'):
            return f'an output of the kind {a.output_type}, stored is {b.output_type}'
        data = lambda o: {'text': o.text} if o.output_type == 'stream' else dict(o.get('data', {}))
        x, y = data(a), data(b)
        if x.keys() != y.keys():
            return f'outputs of the types {sorted(x)}, stored are {sorted(y)}'
        for kind in x:
            if kind == 'image/svg+xml':
                fault = figure_fault(x[kind], y[kind])
                if fault:
                    return fault
            elif not same_text(x[kind], y[kind]):
                return f'printed is\n{x[kind].rstrip()}\nstored is\n{y[kind].rstrip()}'
    return ''


def form_fault(notebook):
    """What makes a notebook one of ours."""
    code = [cell for cell in notebook.cells if cell.cell_type == 'code']
    if notebook.metadata.get('kernelspec', {}).get('name') != 'xcpp20':
        return "its kernel is not 'xcpp20'"
    if not code or code[0].source.strip() != '#include "setup.hpp"':
        return 'its first cell is not #include "setup.hpp"'
    if not any('image/svg+xml' in output.get('data', {}) for cell in code for output in cell.outputs):
        return 'it has no picture'
    return ''


def run(task):
    mode, path = task
    stored = nbformat.read(path, as_version=4)
    notebook = nbformat.from_dict(stored)
    notebook = nbformat.reads(nbformat.writes(stored), as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == 'code':
            cell.outputs, cell.execution_count = [], None
    client = NotebookClient(notebook, timeout=120, kernel_name='xcpp20', record_timing=False,
                            shutdown_kernel='graceful', resources={'metadata': {'path': os.path.dirname(path) or '.'}})
    failed, stopped = [], ''
    try:
        client.execute()
    except CellExecutionError as e:
        stopped = f'{e.ename}: {e.evalue}'
    except (DeadKernelError, TimeoutError, RuntimeError) as e:
        stopped = f'{type(e).__name__}: {e}'
    cells = [(ours, cell) for ours, cell in zip(notebook.cells, stored.cells) if cell.cell_type == 'code']
    for number, (ours, cell) in enumerate(cells, 1):
        ours.outputs = merged(ours.outputs)
        if any(o.output_type == 'error' for o in ours.outputs):
            text = '\n'.join(line for o in ours.outputs if o.output_type == 'error' for line in o.traceback)
            failed.append(f'cell {number} failed: {text}')
        elif stopped and ours.execution_count is None:
            failed.append(f'cell {number} did not run')
        elif mode == 'check':
            fault = output_fault(ours.outputs, merged(cell.outputs))
            if fault:
                failed.append(f'cell {number}: {fault}')
    if stopped and not failed:
        failed.append(stopped)
    if form_fault(notebook) and not stopped:
        failed.append(form_fault(notebook))
    if mode == 'update' and not failed:
        nbformat.write(notebook, path)
    return path, max(len(cells) + 1 - len(failed), 0), failed


def main():
    mode, paths = sys.argv[1], sys.argv[2:]
    passed = failed = 0
    with concurrent.futures.ProcessPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        for path, good, faults in pool.map(run, [(mode, path) for path in paths]):
            passed, failed = passed + good, failed + len(faults)
            print(f'{"FAILED" if faults else "ok"}: {path}', flush=True)
            for fault in faults:
                print('    ' + fault.replace('\n', '\n    '), flush=True)
    if not paths:
        print('there are no notebooks')
        failed = 1
    print(f'{passed} passed, {failed} failed')
    sys.exit(failed > 0)


if __name__ == '__main__':
    main()
