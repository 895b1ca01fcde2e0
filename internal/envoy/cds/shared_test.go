package cds

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// testSharing calls f with a function that opens channels. Each channel has its own lookups, but
// all channels share the stored answers.
func testSharing(t *testing.T, names int, f func(t *testing.T, open func() *channel)) {
	synctest.Test(t, func(t *testing.T) {
		var name []*fakeLookup
		b := given.NewBuilder("x", func(*discovery.Target) ([]discovery.Mechanism, error) {
			name = newLookups(names)
			return []discovery.Mechanism{{Source: newStrictSource(t, 1, name)}}, nil
		})
		f(t, func() *channel {
			c := open(t, b)
			c.lookups = name
			return c
		})
	})
}

// The answer of an open channel must not expire, because later channels may need it.
func TestOpenChannelKeepsStoredAnswer(t *testing.T) {
	testSharing(t, 1, func(t *testing.T, open func() *channel) {
		one := open()
		_ = one.lookups[0].succeed("10.0.0.1:1")
		time.Sleep(2 * time.Hour)
		two := open()
		time.Sleep(time.Second)
		one.lookups[0].Fail(errDown)
		time.Sleep(time.Second)
		two.lookups[0].Fail(errDown)
		two.expect(t, "10.0.0.1:1")
		two.close()
		one.close()
		time.Sleep(time.Minute)
		three := open()
		three.lookups[0].Fail(errDown)
		three.expect(t, "10.0.0.1:1")
		three.close()
	})
}

func expectKeptAddress(t *testing.T, c *channel) {
	t.Helper()
	_ = c.lookups[0].succeed("10.0.0.3:1")
	c.lookups[1].Fail(errDown)
	c.expect(t, "10.0.0.3:1 10.0.0.2:1")
	c.close()
}

// The lookup of a name fails on one channel and later succeeds on another. A third channel must use
// the addresses if its own lookup fails.
func TestAddressesFoundByAnotherChannelAreKept(t *testing.T) {
	testSharing(t, 2, func(t *testing.T, open func() *channel) {
		one := open()
		_ = one.lookups[0].succeed("10.0.0.1:1")
		_ = one.lookups[1].succeed("10.0.0.2:1")
		one.lookups[1].Fail(errDown)
		time.Sleep(2 * time.Hour)
		two := open()
		_ = two.lookups[0].succeed("10.0.0.1:1")
		_ = two.lookups[1].succeed("10.0.0.2:1")
		time.Sleep(time.Second)
		two.close()
		one.close()
		time.Sleep(time.Minute)
		expectKeptAddress(t, open())
	})
}

// One channel finds the addresses of a name, and another channel then stores an answer without
// them. A third channel must use the addresses if its own lookup fails.
func TestAnotherChannelDoesNotRemoveStoredAddresses(t *testing.T) {
	testSharing(t, 2, func(t *testing.T, open func() *channel) {
		one := open()
		_ = one.lookups[0].succeed("10.0.0.1:1")
		_ = one.lookups[1].succeed("10.0.0.2:1")
		time.Sleep(2 * time.Hour)
		two := open()
		_ = two.lookups[0].succeed("10.0.0.1:1")
		two.lookups[1].Fail(errDown)
		time.Sleep(10 * time.Second)
		two.close()
		one.close()
		time.Sleep(time.Minute)
		expectKeptAddress(t, open())
	})
}

func TestStaticClusterWithoutEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := new(Maker).Mechanisms(&Graph{List: []Mechanism{{Cluster: parseCluster(t, `{"loadAssignment":{}}`)}}})
		c := open(t, resolversFor(list[0].Source))
		c.expect(t, "")
		c.close()
	})
}
