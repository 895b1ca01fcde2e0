package arch

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

func TestWorkflows(t *testing.T) {
	for _, problem := range workflowProblems(t, os.DirFS("../..")) {
		t.Error(problem)
	}
}

// The checklist names make targets. release.yml runs those that can run for a tag.
func TestReleaseWorkflowRunsChecklist(t *testing.T) {
	repository := os.DirFS("../..")
	_, checklist, _ := strings.Cut(load(t, repository, "docs/release.md"), "## Checklist")
	checklist, _, _ = strings.Cut(checklist, "\n## ")
	workflow := load(t, repository, ".github/workflows/release.yml")
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

type workflow struct {
	Permissions map[string]string
	Concurrency yaml.Node
	Jobs        map[string]struct {
		Uses           yaml.Node
		Permissions    yaml.Node
		TimeoutMinutes int `yaml:"timeout-minutes"`
		Steps          []step
	}
}

type step struct {
	Uses yaml.Node
	Run  string
}

var (
	pinnedAction = regexp.MustCompile(`^[\w-]+/[\w/.-]+@[0-9a-f]{40}$`)
	pinComment   = regexp.MustCompile(`^# v\d+\.\d+\.\d+$`)
	ciScript     = regexp.MustCompile(`\.ci/[\w.-]+`)
	makeTarget   = regexp.MustCompile(`\bmake ([a-z-]+)`)
)

// workflowProblems checks that each workflow only reads the repository, runs scripts and make targets
// that exist, and pins actions, whose tags their authors could move.
func workflowProblems(t *testing.T, repository fs.FS) (problems []string) {
	t.Helper()
	files, err := fs.Glob(repository, ".github/workflows/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d workflows: %v", len(files), err)
	}
	makefile := load(t, repository, "Makefile")
	for _, file := range files {
		report := func(format string, args ...any) {
			problems = append(problems, path.Base(file)+": "+fmt.Sprintf(format, args...))
		}
		var w workflow
		if err := yaml.Unmarshal([]byte(load(t, repository, file)), &w); err != nil {
			report("%v", err)
			continue
		}
		if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" {
			report("permissions are %v, want map[contents:read]", w.Permissions)
		}
		if w.Concurrency.IsZero() {
			report("no concurrency")
		}
		if strings.Contains(load(t, repository, file), "pull_request_target") {
			report("pull_request_target gives a fork's code the rights of this repository")
		}
		for name, job := range w.Jobs {
			if job.TimeoutMinutes == 0 {
				report("job %s: no timeout-minutes", name)
			}
			if !job.Permissions.IsZero() {
				report("job %s: permissions of its own", name)
			}
			for _, each := range append(job.Steps, step{Uses: job.Uses}) {
				for _, problem := range each.problems(repository, makefile) {
					report("%s", problem)
				}
			}
		}
	}
	return problems
}

func (s step) problems(repository fs.FS, makefile string) (problems []string) {
	if action := s.Uses; !action.IsZero() && (!pinnedAction.MatchString(action.Value) || !pinComment.MatchString(action.LineComment)) {
		problems = append(problems, action.Value+": want a commit's hash, and its version in a comment")
	}
	for _, script := range ciScript.FindAllString(s.Run, -1) {
		if info, err := fs.Stat(repository, script); err != nil || !info.Mode().IsRegular() {
			problems = append(problems, script+" does not exist")
		}
	}
	for _, match := range makeTarget.FindAllStringSubmatch(s.Run, -1) {
		if !strings.Contains("\n"+makefile, "\n"+match[1]+":") {
			problems = append(problems, "the Makefile has no target "+match[1])
		}
	}
	return problems
}
