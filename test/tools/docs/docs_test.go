package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func followText(t *testing.T, text string, env ...string) (dir string, err error) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "page.md"), []byte(strings.ReplaceAll(text, "'''", "```")), 0o644); err != nil {
		t.Fatal(err)
	}
	p, err := readPage(dir, "page.md")
	if err != nil {
		return dir, err
	}
	w := &environment{dir: dir, env: append(env, "PATH="+os.Getenv("PATH"))}
	return dir, w.follow(t.Context(), p).err
}

func TestValidPages(t *testing.T) {
	for name, text := range map[string]string{
		"output of both streams": "'''sh\necho a; echo b >&2\n'''\nThis prints:\n'''text\na\nb\n'''\n",
		"one shell":              "'''sh\nmkdir x\ncd x\nname=value\n'''\n'''sh\necho $name $(basename $PWD)\n'''\n'''text\nvalue x\n'''\n",
		"no output shown":        "'''sh\necho a\n'''\n",
		"no output":              "'''sh\ntrue\n'''\n'''text\n'''\n",
		"wildcards":              "'''sh\nseq 1 5; echo took 12 ms on host\n'''\n'''text\n1\n…\n4\n5\ntook … ms on …\n'''\n",
		"wildcards at the ends":  "'''sh\nseq 1 5\n'''\n'''text\n…\n3\n…\n'''\n",
		"a wildcard for nothing": "'''sh\necho a\n'''\n'''text\n…\na\n…\n'''\n",
		"trailing spaces":        "'''sh\necho 'a  '; echo; echo\n'''\n'''text\na\n'''\n",
		"a file":                 "'''text file=a/b.txt\nx\n'''\n'''sh\ncat a/b.txt\n'''\n'''text\nx\n'''\n",
		"in a list":              "1. First:\n\n   '''sh\n   cat <<EOF\n     a\n   EOF\n   '''\n   '''text\n     a\n   '''\n",
		"a command not run":      "'''sh norun=\"needs a cluster\"\nfalse\n'''\n'''text\nnothing\n'''\n",
		"text not from here":     "'''text norun\na\n'''\n",
		"standard input":         "'''sh\ncat\n'''\n'''text\n'''\n'''sh\necho a\n'''\n'''text\na\n'''\n",
		"statements":             "'''go fragment\nx := 1\n_ = x\n'''\n",
		"declarations":           "'''go fragment\nfunc f() {}\n'''\n",
		"endpoints in Go's JSON": "'''json\n{\"endpoints\": []}\n'''\n",
		"an error that is shown": "'''sh\ncat missing || echo code $?\n'''\n'''text\ncat: …missing…: No such file or directory\ncode 1\n'''\n",
	} {
		if _, err := followText(t, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestInvalidPages(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"wrong output":         {"'''sh\nseq 1 3\n'''\n'''text\n1\n5\n3\n'''\n", "page.md:1: the output is not the one at line 4\n    seq 1 3\n    ----\n    1\n  - 5\n  + 2\n    3\n"},
		"output missing":       {"'''sh\ntrue\n'''\n'''text\na\n'''\n", "  - a\n"},
		"output not shown":     {"'''sh\nseq 1 2\n'''\n'''text\n1\n'''\n", "    1\n  + 2\n"},
		"a wildcard's end":     {"'''sh\nseq 1 3\n'''\n'''text\n1\n…\n2\n'''\n", "the output is not"},
		"a wildcard in a line": {"'''sh\necho took 12 s\n'''\n'''text\ntook … ms\n'''\n", "  - took … ms\n  + took 12 s\n"},
		"a missing file":       {"\n\n'''sh\ncat endpoints.yaml\n'''\n", "page.md:3: exit status 1\n    cat endpoints.yaml\n    ----\n    cat: endpoints.yaml: No such file"},
		"not the last command": {"'''sh\nfalse\ntrue\n'''\n", "exit status 1"},
		"no such command":      {"'''sh\nno-such-command\n'''\n", "exit status 127"},
		"not a script":         {"'''sh\nif\n'''\n", "syntax error"},
		"exit":                 {"'''sh\nexit 0\n'''\n'''sh\nfalse\n'''\n", "ended the shell"},
		"not Go":               {"'''go fragment\nx :=\n'''\n", "page.md:1: "},
		"not gofmt's":          {"'''go fragment\nx  := 1\n'''\n", "gofmt would change it\n  - x := 1\n  + x  := 1\n"},
		"not a whole program":  {"'''go\nx := 1\n'''\n", "write ```go fragment"},
		"not YAML":             {"'''yaml\na: b: c\n'''\n", "page.md:1: "},
		"a file outside":       {"'''yaml file=../a.yaml\na: b\n'''\n", "page.md:1: file=../a.yaml is not"},
		"text after nothing":   {"'''text\na\n'''\n", "page.md:1: the text block follows no command"},
		"text after a file":    {"'''yaml file=a\na: b\n'''\n'''text\na\n'''\n", "page.md:4: the text block follows no command"},
		"no reason":            {"'''sh norun\ntrue\n'''\n", "needs a reason"},
		"another attribute":    {"'''sh notrun=\"x\"\ntrue\n'''\n", "unknown attribute"},
		"another language":     {"'''bash\ntrue\n'''\n", "write sh"},
		"no language":          {"'''\ntrue\n'''\n", "no language"},
		"no end":               {"'''sh\ntrue\n", "page.md:1: the code block has no end"},
	} {
		_, err := followText(t, c.text)
		if got := errorText(err); !strings.Contains(got, c.want) {
			t.Errorf("%s: error %q, want %q in it", name, got, c.want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return "page.md:" + strings.TrimPrefix(err.Error(), "page.md:")
}

func TestBackgroundCommandsAreKilled(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := os.ReadFile(pipe) // returns when all writers have closed the pipe
		ended <- err
	}()
	if _, err := followText(t, "'''sh\nexec 5>$PIPE # waits for the reader\n(trap '' TERM HUP; while sleep 100; do true; done) &\n'''\n'''text\n'''\n", "PIPE="+pipe); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("a background command still runs")
	}
}

func TestCanceledPage(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := &environment{dir: t.TempDir(), env: []string{"PATH=" + os.Getenv("PATH")}}
	time.AfterFunc(50*time.Millisecond, cancel)
	r := w.follow(ctx, &page{name: "page.md", blocks: []block{{line: 1, language: "sh", content: "sleep 300\n"}}})
	if !errors.Is(r.err, context.Canceled) {
		t.Errorf("error %v, want that of the context", r.err)
	}
}

func TestPortInUse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:50199")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	w := &environment{dir: t.TempDir(), env: []string{"PATH=" + os.Getenv("PATH")}}
	r := w.follow(ctx, &page{name: "page.md", blocks: []block{{line: 1, language: "sh", content: "echo 127.0.0.1:50199\n"}}})
	if !strings.Contains(errorText(r.err), "1: port 50199 is in use") {
		t.Errorf("error %v, want one about the port", r.err)
	}
}

func TestModulesAreShared(t *testing.T) {
	shared, own := t.TempDir(), t.TempDir()
	for _, dir := range []string{"golang.org/x", "github.com/other/a@v1.0.0", "github.com/understudy-lb/understudy@v0.1.0", "cache/vcs"} {
		for _, part := range []string{"", "cache/download"} {
			if err := os.MkdirAll(filepath.Join(shared, part, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := shareModules(shared, own); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"", "cache/download"} {
		for _, dir := range []string{"golang.org/x", "github.com/other/a@v1.0.0"} {
			if _, err := os.Stat(filepath.Join(own, part, dir)); err != nil {
				t.Error(err)
			}
		}
		if _, err := os.Lstat(filepath.Join(own, part, "github.com/understudy-lb")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: our own modules are shared, too: %v", part, err)
		}
	}
	if err := shareModules(filepath.Join(shared, "missing"), t.TempDir()); err != nil {
		t.Errorf("without a module cache: %v", err)
	}
}

func TestGoFilesAreCompiled(t *testing.T) {
	env, err := goEnv(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const page = "'''text file=go.mod\nmodule example.com/shop\n'''\n'''go file=a/a.go\npackage a\n\nfunc f() int { return %s }\n'''\n"
	if _, err := followText(t, fmt.Sprintf(page, "1"), "GOCACHE="+env["GOCACHE"]); err != nil {
		t.Error(err)
	}
	_, err = followText(t, fmt.Sprintf(page, "x"), "GOCACHE="+env["GOCACHE"])
	if got := errorText(err); !strings.Contains(got, "page.md:4: a/a.go, at the end of the page: ") || !strings.Contains(got, "undefined: x") {
		t.Errorf("error %q, want one about x", got)
	}
}
