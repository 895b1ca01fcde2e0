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
	"github.com/understudy-lb/understudy/internal/awaiting"
	"github.com/understudy-lb/understudy/internal/core/names"
	"github.com/understudy-lb/understudy/internal/hierarchy"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

type client struct {
	resolver.ClientConn
	has string
}

func (c *client) UpdateState(s resolver.State) error {
	if awaiting.IsAwaiting(s) { // there is no answer yet, so calls wait
		return nil
	}
	var addresses []string
	for _, e := range hierarchy.Unseal(s).Endpoints {
		addresses = append(addresses, e.Addresses[0].Addr)
	}
	c.has = strings.Join(addresses, " ")
	return nil
}

func (c *client) ReportError(err error) { c.has = "error " + err.Error() }

func (*client) ParseServiceConfig(string) *serviceconfig.ParseResult {
	return &serviceconfig.ParseResult{}
}

type channel struct {
	client
	name  []*spoken
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

func over(s discovery.Source) given.Resolvers {
	return given.NewBuilder("x", func(*discovery.Target) ([]discovery.Mechanism, error) {
		return []discovery.Mechanism{{Source: s}}, nil
	})
}

func (c *channel) expect(t *testing.T, want string) {
	t.Helper()
	synctest.Wait()
	if c.has != want {
		t.Errorf("addresses = %s, want %s", c.has, want)
	}
}

// reopened opens several channels one after another: f calls open for each. Their cluster has the
// names a and b.
func reopened(t *testing.T, beside string, f func(open func(then func(a, b *spoken)) string)) {
	synctest.Test(t, func(t *testing.T) {
		name := unsaid(2)
		b := over(strictOf(t, 1, name, strings.Fields(beside)...))
		f(func(then func(a, b *spoken)) string {
			c := open(t, b)
			then(name[0], name[1])
			c.close()
			return c.has
		})
	})
}

var errDown = errors.New("server misbehaving")

// A name cannot be looked up after the channel was idle. It must keep its addresses until an hour
// after they were last confirmed.
func TestNameThatCannotBeLookedUpAfterIdleness(t *testing.T) {
	reopened(t, "", func(open func(func(a, b *spoken)) string) {
		expect := func(want string, then func(a, b *spoken)) {
			t.Helper()
			if got := open(then); got != want {
				t.Errorf("addresses = %s, want %s", got, want)
			}
		}
		both := func(a, b *spoken) {
			_ = a.say("10.0.0.1:1")
			_ = b.say("10.0.0.2:1", "10.0.0.3:1")
			time.Sleep(3 * time.Hour)
		}
		moved := func(a, b *spoken) { b.Fail(errDown); _ = a.say("10.0.0.4:1") }
		neither := func(a, b *spoken) { b.Fail(errDown); a.Fail(errDown) }
		expect("10.0.0.1:1 10.0.0.2:1 10.0.0.3:1", both)
		time.Sleep(50 * time.Minute)
		expect("10.0.0.4:1 10.0.0.2:1 10.0.0.3:1", moved)
		time.Sleep(9 * time.Minute)
		expect("10.0.0.4:1 10.0.0.2:1 10.0.0.3:1", neither)
		expect("10.0.0.4:1 10.0.0.2:1 10.0.0.3:1", moved)
		time.Sleep(2 * time.Minute)
		expect("10.0.0.4:1", moved)
		expect("10.0.0.4:1", neither)
		expect("10.0.0.1:1 10.0.0.2:1 10.0.0.3:1", func(a, b *spoken) { both(a, b); b.Fail(errDown); time.Sleep(59 * time.Minute) })
		expect("10.0.0.4:1 10.0.0.2:1 10.0.0.3:1", moved)
		time.Sleep(2 * time.Minute)
		expect("10.0.0.4:1", moved)
	})
}

// The lookup of a name does not end after the channel was idle. The name must keep its addresses,
// too.
func TestNameThatIsSilentAfterIdleness(t *testing.T) {
	reopened(t, "", func(open func(func(a, b *spoken)) string) {
		open(func(a, b *spoken) { _ = a.say("10.0.0.1:1"); _ = b.say("10.0.0.2:1") })
		got := open(func(a, _ *spoken) { _ = a.say("10.0.0.4:1"); time.Sleep(names.Hold + 1) })
		if want := "10.0.0.4:1 10.0.0.2:1"; got != want {
			t.Errorf("addresses = %s, want %s", got, want)
		}
	})
}

// No name can be looked up, but the cluster also has an address that needs no lookup. The names
// must keep their addresses.
func TestNamesThatAllFailBesideAnAddressAfterIdleness(t *testing.T) {
	reopened(t, "192.0.2.1", func(open func(func(a, b *spoken)) string) {
		const want = "10.0.0.1:1 10.0.0.2:1 192.0.2.1:1"
		for range 2 {
			got := open(func(a, b *spoken) { _ = a.say("10.0.0.1:1"); _ = b.say("10.0.0.2:1") })
			if got != want {
				t.Errorf("addresses = %s, want %s", got, want)
			}
			if got = open(func(a, b *spoken) { a.Fail(errDown); b.Fail(errDown) }); got != want {
				t.Errorf("with failing names: addresses = %s, want %s", got, want)
			}
		}
	})
}
