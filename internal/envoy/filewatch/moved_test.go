package filewatch

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A watched directory is renamed and removed at once. fsnotify then reports an error while it holds
// its lock. This must not cause a deadlock.
func TestDirectoryMovedAndRemoved(t *testing.T) {
	base := t.TempDir()
	dir := mkdir(t, filepath.Join(base, "dir"))
	w := newUnpolled(t, filepath.Join(dir, "a"))
	for i := range 20 {
		must(t, os.Rename(dir, dir+".old"))
		must(t, os.RemoveAll(dir+".old"))
		mkdir(t, dir)
		write(t, filepath.Join(dir, "a"), fmt.Sprint(i))
		waitForNotice(t, w, "the directory is replaced")
	}
}
