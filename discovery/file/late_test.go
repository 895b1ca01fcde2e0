package file

import (
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// A channel that is opened immediately after an edit must begin with the new content, even if other
// channels still use the old content. If the new content is not complete within three seconds, the
// channel must begin with the old content.
func TestChannelOpenedAfterEdit(t *testing.T) {
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		writeOld(t, path, onePort(1))
		watchFile(t, path, pollOnly).expect(t, 1)
		sleep(time.Minute)
		replace(t, path, onePort(2))
		watchFile(t, path, pollOnly).expect(t, 2)
		sleep(time.Minute)
		write(t, path, blockStyle("8443")[:30])
		channel := watchFile(t, path, pollOnly)
		for i := range 12 {
			modTime := time.Now().Add(time.Duration(i) * time.Second)
			if err := os.Chtimes(path, modTime, modTime); err != nil {
				t.Fatal(err)
			}
			sleep(300 * time.Millisecond)
		}
		if len(channel.states) != 1 {
			t.Fatalf("%d states, want the content that the others have", len(channel.states))
		}
		channel.expect(t, 2)
	})
}

// An edit that leaves the content as it was must not delay a new channel beyond the time after which
// a file counts as complete.
func TestChannelOpenedAfterIdenticalEdit(t *testing.T) {
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		writeOld(t, path, onePort(1))
		watchFile(t, path, pollOnly).expect(t, 1)
		sleep(time.Minute)
		write(t, path, onePort(1))
		channel := watchFile(t, path, pollOnly)
		sleep(1100 * time.Millisecond)
		if len(channel.states) != 1 {
			t.Fatalf("%d states 1.1 s after an edit that changed nothing, want 1", len(channel.states))
		}
	})
}
