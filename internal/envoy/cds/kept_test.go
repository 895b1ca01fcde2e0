package cds

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/join"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

type client struct {
	resolver.ClientConn
	state string
}

func (c *client) UpdateState(s resolver.State) error {
	if join.IsAwaiting(s) { // there is no answer yet
		return nil
	}
	var addresses []string
	for _, e := range hierarchy.Unseal(s).Endpoints {
		addresses = append(addresses, e.Addresses[0].Addr)
	}
	c.state = strings.Join(addresses, " ")
	return nil
}

func (c *client) ReportError(err error) { c.state = "error " + err.Error() }

func (*client) ParseServiceConfig(string) *serviceconfig.ParseResult {
	return &serviceconfig.ParseResult{}
}

type channel struct {
	client
	close func()
}

func open(t *testing.T, b given.Resolvers) *channel {
	t.Helper()
	c := &channel{}
	r, err := b.Build(resolver.Target{URL: url.URL{Scheme: "x", Path: "/y"}}, &c.client, resolver.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.close = func() {
		r.Close()
		synctest.Wait()
	}
	return c
}

func resolversFor(s discovery.Source) given.Resolvers {
	return given.NewBuilder("x", func(*discovery.Target) ([]discovery.Mechanism, error) {
		return []discovery.Mechanism{{Source: s}}, nil
	})
}

func (c *channel) expect(t *testing.T, want string) {
	t.Helper()
	synctest.Wait()
	if c.state != want {
		t.Errorf("addresses = %s, want %s", c.state, want)
	}
}

// testReopening calls f with a function that opens a channel, calls then, closes the channel, and
// returns its last addresses. The cluster has the host names a and b.
func testReopening(t *testing.T, f func(open func(then func(a, b *fakeLookup)) string)) {
	synctest.Test(t, func(t *testing.T) {
		name := newLookups(2)
		b := resolversFor(newStrictSource(t, 1, name))
		f(func(then func(a, b *fakeLookup)) string {
			c := open(t, b)
			then(name[0], name[1])
			c.close()
			return c.state
		})
	})
}

var errDown = errors.New("server misbehaving")

// After the channel was idle, the lookup of a name fails. The name must keep its addresses until an
// hour after the channel became idle or, if a lookup failed before that, after the first failure.
func TestFailingNameKeepsAddressesAfterIdle(t *testing.T) {
	testReopening(t, func(open func(func(a, b *fakeLookup)) string) {
		expect := func(want string, then func(a, b *fakeLookup)) {
			t.Helper()
			if got := open(then); got != want {
				t.Errorf("addresses = %s, want %s", got, want)
			}
		}
		resolveBoth := func(a, b *fakeLookup) {
			_ = a.succeed("10.0.0.1:1")
			_ = b.succeed("10.0.0.2:1", "10.0.0.3:1")
			time.Sleep(3 * time.Hour)
		}
		moveFirst := func(a, b *fakeLookup) { b.Fail(errDown); _ = a.succeed("10.0.0.4:1") }
		failBoth := func(a, b *fakeLookup) { b.Fail(errDown); a.Fail(errDown) }
		expect("10.0.0.1:1 10.0.0.2:1 10.0.0.3:1", resolveBoth)
		time.Sleep(50 * time.Minute)
		expect("10.0.0.4:1 10.0.0.2:1 10.0.0.3:1", moveFirst)
		time.Sleep(9 * time.Minute)
		expect("10.0.0.4:1 10.0.0.2:1 10.0.0.3:1", failBoth)
		expect("10.0.0.4:1 10.0.0.2:1 10.0.0.3:1", moveFirst)
		time.Sleep(2 * time.Minute)
		expect("10.0.0.4:1", moveFirst)
		expect("10.0.0.4:1", failBoth)
		expect("10.0.0.1:1 10.0.0.2:1 10.0.0.3:1", func(a, b *fakeLookup) { resolveBoth(a, b); b.Fail(errDown); time.Sleep(59 * time.Minute) })
		expect("10.0.0.4:1 10.0.0.2:1 10.0.0.3:1", moveFirst)
		time.Sleep(2 * time.Minute)
		expect("10.0.0.4:1", moveFirst)
	})
}
