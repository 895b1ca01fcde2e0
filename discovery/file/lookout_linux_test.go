package file

import (
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/testing/given"
)

func notifiers(t *testing.T) int {
	t.Helper()
	all, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(all) == 0 {
		t.Fatalf("%d open files, %v", len(all), err)
	}
	n := 0
	for _, fd := range all {
		if what, err := os.Readlink(fd); err == nil && what == "anon_inode:inotify" {
			n++
		}
	}
	return n
}

// All channels that use a file must share one inotify instance. Each channel must see every edit,
// even after other channels were opened or closed.
func TestChannelsOfOneFileShareItsWatch(t *testing.T) {
	path := newPath(t)
	write(t, path, onePort(1))
	before := notifiers(t)
	var channels []*fakeChannel
	var open []resolver.Resolver
	for range 200 {
		channel := newFakeChannel()
		r, err := given.Builder(Scheme).Build(target(t, "file://"+path), channel, resolver.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		channels, open = append(channels, channel), append(open, r)
	}
	for _, c := range channels {
		c.expect(t, 1)
	}
	if n := notifiers(t) - before; n != 1 {
		t.Errorf("200 channels took %d notifiers, want 1", n)
	}
	replace(t, path, onePort(2))
	for _, c := range channels {
		c.expect(t, 2)
	}
	for _, r := range open[1:] {
		r.Close()
	}
	replace(t, path, onePort(3))
	channels[0].expect(t, 3)
	watchFile(t, path).expect(t, 3)
	open[0].Close()
	for _, c := range channels {
		if n := len(c.states); n != 0 {
			t.Errorf("a channel received %d further updates", n)
		}
	}
}
