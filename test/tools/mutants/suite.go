package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Without a mutant, the tests of a package may take so long.
const maxTimeout = 10 * time.Minute

type suite struct {
	pkg            string
	flags          []string
	limit          time.Duration // the timeout of the tests; 0 before the first run
	failsUnmutated bool          // the tests fail even without a mutant, so they cannot detect mutants
}

// Tests with random input must use the same input for each mutant, and must not save failing input
// to a file: later runs would read it.
func suitesOf(patterns []string) ([]*suite, error) {
	var all []*suite
	for _, pattern := range patterns {
		out, err := run("list", "-f", "{{.ImportPath}} {{.TestImports}} {{.XTestImports}}", pattern)
		if err != nil {
			return nil, fmt.Errorf("go list %s: %w\n%s", pattern, err, out)
		}
		for line := range strings.Lines(out) {
			s := &suite{}
			s.pkg, line, _ = strings.Cut(line, " ")
			if strings.Contains(line, "pgregory.net/rapid") {
				s.flags = []string{"-rapid.seed=1", "-rapid.nofailfile", "-rapid.shrinktime=1ms"}
			}
			all = append(all, s)
		}
	}
	return all, nil
}

// On the first call, we also run the tests without a mutant. If they fail then, they cannot detect
// mutants, and all mutants count as survived.
func (s *suite) run(overlay string) outcome {
	if s.limit == 0 {
		begin := time.Now()
		if out, err := s.test("", maxTimeout); err != nil {
			fmt.Printf("the tests in %s fail without a mutant: %s\n", s.pkg, out)
			s.failsUnmutated = true
		}
		s.limit = min(maxTimeout, max(30*time.Second, 10*time.Since(begin)))
	}
	if s.failsUnmutated {
		return survived
	}
	switch out, err := s.test(overlay, s.limit); {
	case err == nil:
		return survived
	case strings.Contains(out, "[build failed]"):
		return uncompiled
	case strings.Contains(out, "panic: test timed out"):
		return hung
	}
	return killed
}

func (s *suite) test(overlay string, limit time.Duration) (string, error) {
	return run(append([]string{"test", "-overlay", overlay, "-vet=off", "-count=1", "-failfast", "-timeout", limit.String(), s.pkg}, s.flags...)...)
}

func run(args ...string) (string, error) {
	command := exec.Command("go", args...)
	command.Dir = "../.."
	out, err := command.CombinedOutput()
	return string(out), err
}

// overlay writes the changed file, and the file that makes go use it, to dir.
func (m *mutant) overlay(dir string) (string, error) {
	original, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(dir, filepath.Base(m.file)), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(changed, m.code, 0o600); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, text, 0o600)
}
