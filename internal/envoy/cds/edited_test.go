package cds

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/settle"
)

type editableSource struct {
	*discovery.Receiver
	weight int
}

func (*editableSource) Check(bool) error { return nil }

func (e *editableSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	e.Receiver = settle.Receiver(r)
	return discovery.Started{}, nil
}

func (e *editableSource) edit(t *testing.T, names int) []*fakeLookup {
	t.Helper()
	e.weight++
	name := newLookups(names)
	e.Mechanisms([]discovery.Mechanism{{Name: "x", Source: newStrictSource(t, e.weight, name)}})
	return name
}

// When a cluster is edited, the lookup of one of its names fails. The name must keep its last
// addresses. If the channel is idle in between, the name must keep them until an hour after the
// first failed lookup.
func TestFailingNameKeepsAddressesAfterEdit(t *testing.T) {
	for _, openFor := range []time.Duration{30 * time.Minute, 2 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			e := &editableSource{}
			b := resolversFor(e)
			c := open(t, b)
			name := e.edit(t, 2)
			_ = name[0].succeed("10.0.0.1:1")
			_ = name[1].succeed("10.0.0.2:1")
			time.Sleep(openFor)
			for _, want := range []string{"10.0.0.3:1 10.0.0.2:1", "10.0.0.3:1 10.0.0.2:1", "10.0.0.3:1"} {
				name = e.edit(t, 2)
				_ = name[0].succeed("10.0.0.3:1")
				name[1].Fail(errDown)
				time.Sleep(time.Minute)
				c.expect(t, want)
				c.close()
				time.Sleep(50 * time.Minute)
				c = open(t, b)
			}
			c.close()
		})
	}
}

// After the channel was idle, it uses its stored answer. An edit of the cluster must not count as a
// confirmation of this answer, so the answer must expire as if there had been no edit.
func TestEditDoesNotConfirmStoredAnswer(t *testing.T) {
	failBoth := func(name []*fakeLookup) { name[1].Fail(errDown); name[0].Fail(errDown) }
	failSecond := func(name []*fakeLookup) { name[1].Fail(errDown); _ = name[0].succeed("10.0.0.1:1") }
	for _, openFor := range []time.Duration{0, 2 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			e := &editableSource{}
			b := resolversFor(e)
			c := open(t, b)
			name := e.edit(t, 2)
			_ = name[0].succeed("10.0.0.1:1")
			_ = name[1].succeed("10.0.0.2:1")
			c.close()
			time.Sleep(50 * time.Minute)
			c = open(t, b)
			failBoth(e.edit(t, 2))
			c.expect(t, "10.0.0.1:1 10.0.0.2:1")
			time.Sleep(openFor)
			failSecond(e.edit(t, 2))
			c.expect(t, "10.0.0.1:1 10.0.0.2:1")
			c.close()
			time.Sleep(11 * time.Minute)
			c = open(t, b)
			failSecond(e.edit(t, 2))
			c.expect(t, "10.0.0.1:1")
			c.close()
		})
	}
}

// A cluster is edited twice, and the second edit comes before the first one has taken effect. The
// addresses that were found between the edits must be kept.
func TestAddressesFoundBetweenEditsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &editableSource{}
		c := open(t, resolversFor(e))
		defer c.close()
		name := e.edit(t, 1)
		_ = name[0].succeed("10.0.0.1:1")
		c.expect(t, "10.0.0.1:1")
		slow := newLookups(1)
		list := func(weight, names int) []*fakeLookup {
			name := newLookups(names)
			e.Mechanisms([]discovery.Mechanism{{Name: "x", Source: newStrictSource(t, weight, name)}, {Name: "slow", Source: slow[0]}})
			return name
		}
		name = list(2, 2)
		_ = name[0].succeed("10.0.0.1:1")
		_ = name[1].succeed("10.0.0.2:1")
		time.Sleep(time.Second)
		name = list(3, 2)
		_ = name[0].succeed("10.0.0.1:1")
		name[1].Fail(errDown)
		time.Sleep(time.Minute)
		c.expect(t, "10.0.0.1:1 10.0.0.2:1")
	})
}
