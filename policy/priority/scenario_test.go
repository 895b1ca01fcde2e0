package priority

import (
	"path/filepath"
	"testing"
	"testing/synctest"

	scenario "github.com/understudy-lb/understudy/internal/testing/priorityscenario"
)

func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("../../internal/core/priority/testdata/*/*.txt")
	if err != nil || len(files) < 6 {
		t.Fatalf("found %d scenario files, want at least 6; error: %v", len(files), err)
	}
	for _, file := range files {
		if filepath.Base(file) == "overflow.txt" {
			continue // only of the core: the policy publishes other pickers, because shares decide
		}
		t.Run(file, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				scenario.Run(t, file, func() scenario.Target { return newRecorder() })
			})
		})
	}
}
