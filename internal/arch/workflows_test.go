package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The checklist names make targets. release.yml runs those that can run for a tag.
func TestReleaseWorkflowRunsChecklist(t *testing.T) {
	_, checklist, _ := strings.Cut(readFile(t, "docs/release.md"), "## Checklist")
	checklist, _, _ = strings.Cut(checklist, "\n## ")
	workflow := readFile(t, ".github/workflows/release.yml")
	named := makeTarget.FindAllStringSubmatch(checklist, -1)
	for _, match := range named {
		target := match[1]
		if target == "tag" { // the tag exists
			continue
		}
		if !strings.Contains(workflow, "make "+target) && !strings.Contains(workflow, "bash .ci/"+target) {
			t.Errorf("release.yml does not run make %s, which docs/release.md names", target)
		}
	}
	if len(named) < 10 {
		t.Errorf("docs/release.md names %d targets, want at least 10", len(named))
	}
}

var (
	action     = regexp.MustCompile(`\buses: (.*)`)
	pinned     = regexp.MustCompile(`^[\w-]+/[\w/.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	ciScript   = regexp.MustCompile(`\.ci/[\w.-]+`)
	makeTarget = regexp.MustCompile(`\bmake ([a-z-]+)`)
)

// Each workflow only reads the repository, ends, runs scripts and make targets that exist, and pins
// actions, whose tags their authors could move.
func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob("../../.github/workflows/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d workflows: %v", len(files), err)
	}
	makefile := "\n" + readFile(t, "Makefile")
	for _, file := range files {
		text := readFile(t, strings.TrimPrefix(filepath.ToSlash(file), "../../"))
		count := func(part string) int { return strings.Count(text, part) }
		if count("permissions:") != 1 || count("\npermissions:\n  contents: read\n\n") != 1 || count("pull_request_target") != 0 {
			t.Errorf("%s may do more than read the repository", file)
		}
		if count("\nconcurrency:") != 1 || count("runs-on:") != count("timeout-minutes:") {
			t.Errorf("%s has no concurrency, or a job without timeout-minutes", file)
		}
		for _, match := range action.FindAllStringSubmatch(text, -1) {
			if !pinned.MatchString(match[1]) {
				t.Errorf("%s: %s: want a commit's hash, and its version in a comment", file, match[1])
			}
		}
		for _, script := range ciScript.FindAllString(text, -1) {
			if info, err := os.Stat("../../" + script); err != nil || !info.Mode().IsRegular() {
				t.Errorf("%s: %s does not exist", file, script)
			}
		}
		for _, match := range makeTarget.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(makefile, "\n"+match[1]+":") {
				t.Errorf("%s: the Makefile has no target %s", file, match[1])
			}
		}
	}
}
