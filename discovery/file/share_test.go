package file

import (
	"testing"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/testing/given"
)

// Each channel of a file must get every edit, even after other channels have been opened or closed.
func TestChannelsShareWatch(t *testing.T) {
	path := newPath(t)
	write(t, path, onePort(1))
	var channels []*fakeChannel
	var resolvers []resolver.Resolver
	for range 200 {
		channel := newFakeChannel()
		r, err := given.Builder(Scheme).Build(target(t, "file://"+path), channel, resolver.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		channels, resolvers = append(channels, channel), append(resolvers, r)
	}
	for _, c := range channels {
		c.expect(t, 1)
	}
	replace(t, path, onePort(2))
	for _, c := range channels {
		c.expect(t, 2)
	}
	for _, r := range resolvers[1:] {
		r.Close()
	}
	replace(t, path, onePort(3))
	channels[0].expect(t, 3)
	watchFile(t, path).expect(t, 3)
	resolvers[0].Close()
	for _, c := range channels {
		if n := len(c.states); n != 0 {
			t.Errorf("a channel received %d further updates", n)
		}
	}
}
