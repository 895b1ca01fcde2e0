package filewatch

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// If many files change between two calls of Wait, the Watcher must remember only a limited number
// of these changes.
func TestRememberedChangesAreLimited(t *testing.T) {
	w := NewWith(Options{PollOnly: true})
	t.Cleanup(w.Close)
	for i := range 2 * maxEntries {
		w.notify(Changed, dirEntry{"/dir", fmt.Sprint(i)})
	}
	if n := len(w.entries); n > 10_000 {
		t.Errorf("%d entries are remembered, want at most 10,000", n)
	}
}

func TestPathWithTooManyLinks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const links = 60
	for i := range links {
		if err := os.Symlink(fmt.Sprint("link", i+1), filepath.Join(dir, fmt.Sprint("link", i))); err != nil {
			t.Fatal(err)
		}
	}
	found := findDirs([]string{filepath.Join(dir, "link0")})[dir]
	if found == nil || len(found.names) > 41 {
		t.Errorf("the entries %v are watched, want at most 41", found)
	}
}
