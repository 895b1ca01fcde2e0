package cds

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/settle"
)

type edits struct {
	*discovery.Receiver
	weight int
}

func (*edits) Check(bool) error { return nil }

func (e *edits) Start(r *discovery.Receiver) (discovery.Started, error) {
	e.Receiver = settle.Receiver(r)
	return discovery.Started{}, nil
}

func (e *edits) edit(t *testing.T, names int) []*spoken {
	t.Helper()
	e.weight++
	name := unsaid(names)
	e.Parts([]discovery.Mechanism{{Name: "x", Source: strictOf(t, e.weight, name)}})
	return name
}

// A cluster is edited, and one of its names can no longer be looked up. The name must keep the
// addresses in use. If the channel was idle meanwhile, it must keep them until an hour after the
// edit.
func TestNameThatCannotBeLookedUpWhenItsClusterIsEdited(t *testing.T) {
	for _, awake := range []time.Duration{30 * time.Minute, 2 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			e := &edits{}
			b := over(e)
			c := open(t, b)
			name := e.edit(t, 2)
			_ = name[0].say("10.0.0.1:1")
			_ = name[1].say("10.0.0.2:1")
			time.Sleep(awake)
			for _, want := range []string{"10.0.0.3:1 10.0.0.2:1", "10.0.0.3:1 10.0.0.2:1", "10.0.0.3:1"} {
				name = e.edit(t, 2)
				_ = name[0].say("10.0.0.3:1")
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

// The lookups of a name have failed for a long time when its cluster is edited. The name must
// nevertheless keep its addresses.
func TestNameThatIsLostForLongWhenItsClusterIsEdited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &edits{}
		c := open(t, over(e))
		defer c.close()
		name := e.edit(t, 2)
		_ = name[0].say("10.0.0.1:1")
		_ = name[1].say("10.0.0.2:1")
		name[1].Fail(errDown)
		for range 5 {
			time.Sleep(30 * time.Minute)
			_ = name[0].say("10.0.0.1:1")
		}
		c.expect(t, "10.0.0.1:1 10.0.0.2:1")
		name = e.edit(t, 2)
		_ = name[0].say("10.0.0.3:1")
		name[1].Fail(errDown)
		time.Sleep(time.Minute)
		c.expect(t, "10.0.0.3:1 10.0.0.2:1")
	})
}

// The channel was idle and uses its stored answer. An edit of the cluster must not count as a
// confirmation of that answer.
func TestEditOfAnAnswerThatWasKeptDoesNotConfirmIt(t *testing.T) {
	down := func(name []*spoken) { name[1].Fail(errDown); name[0].Fail(errDown) }
	lost := func(name []*spoken) { name[1].Fail(errDown); _ = name[0].say("10.0.0.1:1") }
	for _, awake := range []time.Duration{0, 2 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			e := &edits{}
			b := over(e)
			c := open(t, b)
			name := e.edit(t, 2)
			_ = name[0].say("10.0.0.1:1")
			_ = name[1].say("10.0.0.2:1")
			c.close()
			time.Sleep(50 * time.Minute)
			c = open(t, b)
			down(e.edit(t, 2))
			c.expect(t, "10.0.0.1:1 10.0.0.2:1")
			time.Sleep(awake)
			lost(e.edit(t, 2))
			c.expect(t, "10.0.0.1:1 10.0.0.2:1")
			c.close()
			time.Sleep(11 * time.Minute)
			c = open(t, b)
			lost(e.edit(t, 2))
			c.expect(t, "10.0.0.1:1")
			c.close()
		})
	}
}

func TestEditWhileNothingCanBeLookedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &edits{}
		b := over(e)
		c := open(t, b)
		before := e.edit(t, 1)
		_ = before[0].say("10.0.0.1:1")
		time.Sleep(2 * time.Hour)
		after := e.edit(t, 1)
		before[0].Fail(errDown)
		time.Sleep(time.Second)
		after[0].Fail(errDown)
		c.close()
		time.Sleep(time.Minute)
		c = open(t, b)
		e.edit(t, 1)[0].Fail(errDown)
		c.expect(t, "10.0.0.1:1")
		c.close()
	})
}

// A cluster is edited again before the first edit has taken effect. Addresses that were found
// between the edits must be kept.
func TestNameThatWasFoundBetweenTwoEdits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &edits{}
		c := open(t, over(e))
		defer c.close()
		name := e.edit(t, 1)
		_ = name[0].say("10.0.0.1:1")
		c.expect(t, "10.0.0.1:1")
		slow := unsaid(1)
		list := func(weight, names int) []*spoken {
			name := unsaid(names)
			e.Parts([]discovery.Mechanism{{Name: "x", Source: strictOf(t, weight, name)}, {Name: "slow", Source: slow[0]}})
			return name
		}
		name = list(2, 2)
		_ = name[0].say("10.0.0.1:1")
		_ = name[1].say("10.0.0.2:1")
		time.Sleep(time.Second)
		name = list(3, 2)
		_ = name[0].say("10.0.0.1:1")
		name[1].Fail(errDown)
		time.Sleep(time.Minute)
		c.expect(t, "10.0.0.1:1 10.0.0.2:1")
	})
}
