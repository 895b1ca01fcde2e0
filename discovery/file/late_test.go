package file

import (
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// A file is edited, and a channel opens right afterwards. It must begin with the new content, even
// if other channels still use the old one. If the new content is not complete within three seconds,
// it must begin with the old one.
func TestAChannelThatComesAfterAnEdit(t *testing.T) {
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		writeBefore(t, path, onePort(1))
		watchFile(t, path, polled).expect(t, 1)
		pass(time.Minute)
		replace(t, path, onePort(2))
		watchFile(t, path, polled).expect(t, 2)
		pass(time.Minute)
		write(t, path, blockStyle("8443")[:30])
		late := watchFile(t, path, polled)
		for i := range 12 {
			at := time.Now().Add(time.Duration(i) * time.Second)
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
			pass(300 * time.Millisecond)
		}
		if len(late.states) != 1 {
			t.Fatalf("%d states, want the content that the others have", len(late.states))
		}
		late.expect(t, 2)
	})
}
