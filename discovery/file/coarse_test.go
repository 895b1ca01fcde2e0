package file

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/envoy/filewatch"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// Some file systems round modification times to two seconds. A file that was read during a write
// may then have the same size and time after the write. The source must nevertheless read the file
// again.
func TestWriteWithUnchangedModTime(t *testing.T) {
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		polled := given.Sources(discovery.OwnOption(func(o *filewatch.Options) { o.PollOnly = true }))
		written := time.Now()
		writeAt := func(content string) {
			write(t, path, content)
			if err := os.Chtimes(path, written, written); err != nil {
				t.Fatal(err)
			}
		}
		writeAt(onePort(1))
		c := watchFile(t, path, polled)
		c.expect(t, 1)
		time.Sleep(1500 * time.Millisecond)
		writeAt(onePort(2))
		c.expect(t, 2)
	})
}
