package file

import (
	"testing"
	"testing/synctest"
	"time"
)

// A channel that is opened after an edit that leaves the content as it was must not wait for the
// edit to be read.
func TestChannelOpenedAfterIdenticalEdit(t *testing.T) {
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		writeOld(t, path, onePort(1))
		watchFile(t, path).expect(t, 1)
		sleep(time.Minute)
		write(t, path, onePort(1))
		channel := watchFile(t, path)
		sleep(1100 * time.Millisecond)
		if len(channel.states) != 1 {
			t.Fatalf("%d states 1.1 s after an edit that changed nothing, want 1", len(channel.states))
		}
	})
}
