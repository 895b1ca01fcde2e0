package file

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/testing/given"
)

// All files of a process must share one inotify instance, which must be closed together with the
// last channel. Each channel must get the edits of its own file.
func TestFilesShareInotify(t *testing.T) {
	const files = 40
	const initial = 0
	for inotifyCount(t) != initial {
		runtime.Gosched()
	}
	base := t.TempDir()
	var channels []*fakeChannel
	var resolvers []resolver.Resolver
	path := func(i int) string { return filepath.Join(base, fmt.Sprint("dir", i%4), fmt.Sprint(i, ".yaml")) }
	for i := range files {
		mkdir(t, filepath.Dir(path(i)))
		write(t, path(i), onePort(1))
		channel := newFakeChannel()
		r, err := given.Builder(Scheme).Build(target(t, "file://"+path(i)), channel, resolver.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		channels, resolvers = append(channels, channel), append(resolvers, r)
	}
	for _, c := range channels {
		c.expect(t, 1)
	}
	if n := inotifyCount(t) - initial; n != 1 {
		t.Errorf("%d files took %d notifiers, want 1", files, n)
	}
	for _, r := range resolvers[files/2:] {
		r.Close()
	}
	for i := range files / 2 {
		replace(t, path(i), onePort(i+2))
	}
	for i, c := range channels[:files/2] {
		c.expect(t, i+2)
	}
	for _, r := range resolvers[:files/2] {
		r.Close()
	}
	for inotifyCount(t) != initial {
		runtime.Gosched()
	}
}
