package filewatch

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

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
	if found == nil || len(found) > 41 {
		t.Errorf("the entries %v are watched, want at most 41", found)
	}
}
