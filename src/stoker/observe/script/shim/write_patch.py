# SPDX-License-Identifier: Apache-2.0
"""Prints a unified diff that makes changes in a Python script, for `stoker doctor --patch`.

    python write_patch.py '[{"option": "num_workers=4", "where": "train.py:14"}, ...]'

Options are written as for a trial (stoker_shim/trial.py); line 0 means the whole file. A change whose place is not found
is named in a line above the diff, which `patch` and `git apply` skip. No file is written.
"""

import ast
import difflib
import json
import os
import re
import sys

_LINES = ("torch.set_num_threads", "torch.set_float32_matmul_precision", "torch.backends.cudnn.benchmark")  # after imports
_LOADER, _OPTIMIZERS = ("DataLoader",), ("Adam", "AdamW", "SGD", "Adagrad")
_CALLS = {  # the calls that take an argument, and how many stand before it if it has no name
    "num_workers": (_LOADER, 5),
    "persistent_workers": (_LOADER, 99),
    "pin_memory": (_LOADER, 7),
    "worker_init_fn": (_LOADER, 10),
    "set_to_none": (("zero_grad",), 0),
    "dynamic": (("torch.compile",), 99),
    "fused": (_OPTIMIZERS, 99),
}


class Script:
    """The text of one file, in bytes: that is how ast counts columns."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.before = self.text = file.read()

    def tree(self):
        return ast.parse(self.text)

    def check(self, before):
        """Undoes a change after which the file is no Python."""
        try:
            self.tree()
        except SyntaxError:
            self.text = before
            raise

    def offset(self, line, column):
        return sum(map(len, self.text.split(b"\n")[: line - 1])) + line - 1 + column

    def replace(self, begin, end, text):
        self.text = self.text[:begin] + text.encode() + self.text[end:]

    def replace_node(self, node, text):
        begin = self.offset(node.lineno, node.col_offset)
        self.replace(begin, self.offset(node.end_lineno, node.end_col_offset), text)

    def diff(self, path):
        before, after = (re.findall("[^\n]*\n|[^\n]+$", each.decode("utf-8", "surrogateescape")) for each in (self.before, self.text))
        lines = difflib.unified_diff(before, after, f"a/{path}", f"b/{path}")
        return "".join(each if each.endswith("\n") else each + "\n\\ No newline at end of file\n" for each in lines)


def _name(call):
    """'DataLoader' of torch.utils.data.DataLoader(...)."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _calls(tree, names, line):
    """Calls of these functions, by the last part of their name or by the whole; with a line those that reach over it, the
    innermost first."""
    found = [
        each
        for each in ast.walk(tree)
        if isinstance(each, ast.Call)
        and (_name(each) in names or ast.unparse(each.func) in names)
        and (not line or each.lineno <= line <= each.end_lineno)
    ]
    return sorted(found, key=lambda each: each.end_lineno - each.lineno)


def _set_argument(script, call, name, value, place):
    given = {each.arg: each.value for each in call.keywords}
    if name == "worker_init_fn" and (name in given or place < len(call.args)):
        raise LookupError("the loader has one: call torch.set_num_threads(1) in it")
    if name == "fused" and "foreach" in given:
        script.replace_node(given["foreach"], "None")
        call = _same_call(script, call)
        given = {each.arg: each.value for each in call.keywords}
    if name in given:
        return script.replace_node(given[name], value)
    if None in given:
        raise LookupError("the call has **arguments: add it there")
    if any(isinstance(each, ast.Starred) for each in call.args):
        raise LookupError("the call has *arguments")
    if place < len(call.args):
        return script.replace_node(call.args[place], value)
    given = [*call.args, *(each.value for each in call.keywords)]
    if not given:
        end = script.offset(call.end_lineno, call.end_col_offset) - 1
        return script.replace(end, end, f"{name}={value}")
    last = max(given, key=lambda each: (each.end_lineno, each.end_col_offset))
    end = script.offset(last.end_lineno, last.end_col_offset)
    return script.replace(end, end, f", {name}={value}")


def _same_call(script, call):
    """The call as it stands after a change inside of it."""
    return next(each for each in ast.walk(script.tree()) if isinstance(each, ast.Call) and (each.lineno, each.col_offset) == (call.lineno, call.col_offset) and _name(each) == _name(call))


def _add_line(script, name, statement):
    """Instead of the same statement with another value, if the script itself has it and not one of its functions; else
    below the imports."""
    tree = script.tree()
    outer = [*tree.body, *(inner for each in tree.body if isinstance(each, ast.If) for inner in each.body)]
    for node in outer:
        call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == name
        if call or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name):
            return script.replace_node(node, statement)
    imports = [each for each in tree.body if isinstance(each, (ast.Import, ast.ImportFrom))]
    if not imports:
        raise LookupError("the script has no import")
    has_torch = any(alias.name == "torch" and not alias.asname for each in imports if isinstance(each, ast.Import) for alias in each.names)
    place = script.offset(imports[-1].end_lineno + 1, 0)
    return script.replace(place, place, ("" if has_torch else "import torch\n") + f"\n{statement}\n")


def _change(script, line, option):
    name, assigned, _ = re.fullmatch(r"([\w.]+)(?:=(.*)|\((.*)\))", option).groups()
    if name in _LINES:
        return _add_line(script, name, option.replace("=", " = ", 1) if assigned else option)
    if name == "torch.autograd.set_detect_anomaly":
        found = _calls(script.tree(), ("set_detect_anomaly", "detect_anomaly"), 0)
        if not found:
            raise LookupError("no call of set_detect_anomaly or detect_anomaly was found")
        return script.replace_node(found[0], option)
    if name not in _CALLS:
        raise LookupError("this change has no single place in a script")
    calls, place = _CALLS[name]
    found = _calls(script.tree(), calls, line)
    if not found:
        raise LookupError(f"no call of {' or '.join(calls)} was found in line {line}")
    return _set_argument(script, found[0], name, assigned, place)


def _places_first(option):
    """Changes that add lines come last: the numbers of the others are those of the file as it is."""
    return option["option"].split("=")[0].split("(")[0] in _LINES


def main(changes):
    scripts, missing = {}, []
    single = [{**each, "option": one} for each in changes for one in re.split(r", (?=[\w.]+[=(])| (?=MALLOC_)", each["option"])]
    for change in sorted(single, key=_places_first):
        path, _, line = change["where"].rpartition(":")
        try:
            if change["option"].startswith("MALLOC_"):
                raise LookupError("it belongs into the environment of the program")
            if not path:
                raise LookupError("its place in the script is not known")
            if os.path.relpath(path).startswith(os.pardir):
                raise LookupError(f"{path} is not in this folder")
            script = scripts[path] = scripts.get(path) or Script(path)
            before = script.text
            _change(script, int(line or 0), change["option"])
            script.check(before)
        except (LookupError, OSError, SyntaxError, ValueError) as error:
            missing.append(f"not in the patch: {change['option']}: {error}\n")
    text = "".join(missing) + "".join(script.diff(os.path.relpath(path)) for path, script in scripts.items())
    sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
