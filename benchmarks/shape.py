import ast, sys
from pathlib import Path
import statistics as st
def compiled(fn):
    for d in fn.decorator_list:
        n = d.func if isinstance(d, ast.Call) else d
        s = ast.unparse(n)
        if "njit" in s or s.endswith("jit") or "kernel" in s or "cuda.jit" in s: return True
    return False
def branches(fn):
    return sum(isinstance(n, (ast.If, ast.For, ast.While, ast.IfExp, ast.ExceptHandler, ast.BoolOp, ast.comprehension, ast.Assert, ast.match_case)) for n in ast.walk(fn))
def body_lines(fn):
    b = fn.body
    if isinstance(b[0], ast.Expr) and isinstance(b[0].value, ast.Constant) and isinstance(b[0].value.value, str): b = b[1:] or b
    return fn.end_lineno - b[0].lineno + 1
def inner(fn): return 0
rows = []; params = documented = 0
root = Path(sys.argv[1])
for f in sorted(root.rglob("*.py")):
    tree = ast.parse(f.read_text())
    stack = [(tree, False)]
    while stack:
        node, inside = stack.pop()
        for ch in ast.iter_child_nodes(node):
            if isinstance(ch, (ast.FunctionDef, ast.AsyncFunctionDef)):
                a = ch.args; n = len(a.args) + len(a.kwonlyargs) + len(a.posonlyargs)
                names = [x.arg for x in a.posonlyargs + a.args + a.kwonlyargs if x.arg not in ("self", "cls")]
                k = compiled(ch) or inside
                rows.append((body_lines(ch), len(names), branches(ch), k, f"{f.relative_to(root)}:{ch.name}"))
                if k:
                    doc = ast.get_docstring(ch) or ""
                    params += len(names); documented += sum(__import__("re").search(rf"\b{n}\b", doc) is not None for n in names)
                stack.append((ch, k))
            else: stack.append((ch, inside))
for i, name in enumerate(("body", "args", "branches")):
    v = sorted(r[i] for r in rows); print(name, "median", st.median(v), "p90", v[int(.9*len(v))], "max", v[-1])
print("functions", len(rows), "compiled params", params, "documented", documented)
print("long:"); [print(" ", r) for r in sorted(rows, reverse=True) if r[0] > (120 if r[3] else 60)]
print("args > 10:"); [print(" ", r) for r in sorted(rows, key=lambda r: -r[1]) if r[1] > 10]
print("branches > 20:"); [print(" ", r) for r in sorted(rows, key=lambda r: -r[2]) if r[2] > 20]
