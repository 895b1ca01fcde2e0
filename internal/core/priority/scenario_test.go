package priority_test

import (
	"path/filepath"
	"testing"

	scenario "github.com/understudy-lb/understudy/internal/testing/priorityscenario"
)

func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.txt")
	if err != nil || len(files) < 6 {
		t.Fatalf("found %d scenario files, want at least 6; error: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			scenario.Run(t, file, func() scenario.Target { return newTarget() })
		})
	}
}
