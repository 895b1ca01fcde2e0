package filewatch

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFilesWithSameName(t *testing.T) {
	one, two := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "a")
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(filepath.Dir(two), link))
	w := newUnpolled(t, filepath.Dir(one), link)
	write(t, two, "half")
	write(t, one+".new", "whole")
	must(t, os.Rename(one+".new", one))
	paths := []string{one, filepath.Join(link, "a")}
	seen := make(map[string]Notice)
	for seen[paths[0]] == Looked || seen[paths[1]] == Looked {
		waitForNotice(t, w, "two files")
		for _, path := range paths {
			seen[path] = max(seen[path], w.Of(path))
		}
	}
	if seen[paths[0]] != Moved || seen[paths[1]] != Written {
		t.Errorf("notices %v, want Moved for the first and Written for the second", seen)
	}
	if got := w.Of(filepath.Join(link, "b")); got != Looked {
		t.Errorf("notice %v for a missing file", got)
	}
}
