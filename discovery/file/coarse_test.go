package file

import (
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// Some file systems round modification times to two seconds. A file that was read during a write
// may then have the same size and time after the write. The source must nevertheless read the file
// again.
func TestWriteWithUnchangedModTime(t *testing.T) {
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		written := time.Now()
		writeAt := func(content string) {
			write(t, path, content)
			if err := os.Chtimes(path, written, written); err != nil {
				t.Fatal(err)
			}
		}
		writeAt(onePort(1))
		c := watchFile(t, path)
		c.expect(t, 1)
		time.Sleep(1500 * time.Millisecond)
		writeAt(onePort(2))
		c.expect(t, 2)
	})
}
