"""Completion in shells: what they are told, and what `--install-completion` leaves in a new user's folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CODE = "import sys; from bellapy.__main__ import main; sys.argv = ['bellapy', *sys.argv[1:]]; main()"
CASES = [("bellapy ov", "overlap"), ("bellapy overlap --max-c", "--max-copies"), ("bellapy overlap --device cu", "cuda")]


@pytest.mark.parametrize(("words", "expected"), CASES)
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_what_shells_are_told(shell, words, expected):
    asked = {"_BELLAPY_COMPLETE": f"complete_{shell}", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    asked["_TYPER_COMPLETE_ARGS"] = words
    done = subprocess.run([sys.executable, "-c", CODE], env={**os.environ, **asked}, capture_output=True, text=True)
    told = done.stdout.split() if shell == "bash" else done.stdout.split('"')[1:2]
    assert [word.partition(":")[0] for word in told] == [expected], done.stdout + done.stderr


@pytest.fixture
def user(tmp_path):
    """What a new user has: an empty folder, and the command on the path."""
    command = tmp_path / "bin" / "bellapy"
    command.parent.mkdir()
    command.write_text(f"#!{sys.executable}\n{CODE}\n")
    command.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    return {**os.environ, "HOME": str(home), "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}"}


def ask(shell: str, script: str, user: dict[str, str]) -> str:
    words = {"bash": ["bash", "--norc", "-c"], "zsh": ["zsh", "-f", "-c"]}[shell]
    done = subprocess.run([*words, script], env=user, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_installed_completion(shell, user):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    # The shell has to wait for the command: it is found by the name of the process above.
    assert "installed in" in ask(shell, "bellapy --install-completion; true", user)
    home = Path(user["HOME"])
    if shell == "bash":
        assert ".bash_completions/bellapy.sh" in (home / ".bashrc").read_text()
        words = "COMP_WORDS=(bellapy ov); COMP_CWORD=1; _bellapy_completion bellapy; echo ${COMPREPLY[@]}"
        assert ask(shell, f". ~/.bash_completions/bellapy.sh; {words}", user).split() == ["overlap"]
    else:
        assert "fpath+=~/.zfunc" in (home / ".zshrc").read_text()
        replaced = "compdef() { }; _arguments() { print -r -- $@; }; words=(bellapy ov); CURRENT=2"
        assert "overlap" in ask(shell, f"{replaced}; . ~/.zfunc/_bellapy; _bellapy_completion", user)
