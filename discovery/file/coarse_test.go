package file

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/filewatch"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// The file is read in the middle of a write, and the rest of the write changes neither the size nor
// the time of the file. This can happen because the timestamps of some file systems have a
// resolution of two seconds.
func TestAWriteThatTheTimeOfTheFileDoesNotTell(t *testing.T) {
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
