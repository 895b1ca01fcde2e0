package cds

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// sharing calls f with a function that opens channels. Each channel gets its own instance of the
// cluster, but all share the stored answers.
func sharing(t *testing.T, names int, f func(t *testing.T, open func() *channel)) {
	synctest.Test(t, func(t *testing.T) {
		var name []*spoken
		b := given.NewBuilder("x", func(*discovery.Target) ([]discovery.Mechanism, error) {
			name = unsaid(names)
			return []discovery.Mechanism{{Source: strictOf(t, 1, name)}}, nil
		})
		f(t, func() *channel {
			c := open(t, b)
			c.name = name
			return c
		})
	})
}

// When a channel opens, the stored answer of another open channel must be kept.
func TestAnswerOfAChannelThatIsAwakeIsThereForAnother(t *testing.T) {
	sharing(t, 1, func(t *testing.T, open func() *channel) {
		one := open()
		_ = one.name[0].say("10.0.0.1:1")
		time.Sleep(2 * time.Hour)
		two := open()
		time.Sleep(time.Second)
		one.name[0].Fail(errDown)
		time.Sleep(time.Second)
		two.name[0].Fail(errDown)
		two.expect(t, "10.0.0.1:1")
		two.close()
		one.close()
		time.Sleep(time.Minute)
		three := open()
		three.name[0].Fail(errDown)
		three.expect(t, "10.0.0.1:1")
		three.close()
	})
}

func expectRemembered(t *testing.T, c *channel) {
	t.Helper()
	_ = c.name[0].say("10.0.0.3:1")
	c.name[1].Fail(errDown)
	c.expect(t, "10.0.0.3:1 10.0.0.2:1")
	c.close()
}

// One channel cannot look up a name, and another channel finds its addresses later. These addresses
// must be kept.
func TestNameThatAnotherChannelLookedUpLater(t *testing.T) {
	sharing(t, 2, func(t *testing.T, open func() *channel) {
		one := open()
		_ = one.name[0].say("10.0.0.1:1")
		_ = one.name[1].say("10.0.0.2:1")
		one.name[1].Fail(errDown)
		time.Sleep(2 * time.Hour)
		two := open()
		_ = two.name[0].say("10.0.0.1:1")
		_ = two.name[1].say("10.0.0.2:1")
		time.Sleep(time.Second)
		two.close()
		one.close()
		time.Sleep(time.Minute)
		expectRemembered(t, open())
	})
}

// The stored addresses of a name must be kept even if another channel stores an answer without
// them.
func TestNameThatAChannelKnowsWhileAnotherAnswersWithout(t *testing.T) {
	sharing(t, 2, func(t *testing.T, open func() *channel) {
		one := open()
		_ = one.name[0].say("10.0.0.1:1")
		_ = one.name[1].say("10.0.0.2:1")
		time.Sleep(2 * time.Hour)
		two := open()
		_ = two.name[0].say("10.0.0.1:1")
		two.name[1].Fail(errDown)
		time.Sleep(10 * time.Second)
		two.close()
		one.close()
		time.Sleep(time.Minute)
		expectRemembered(t, open())
	})
}

func TestStaticClusterWithoutEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, over(static{listed(t, `{"loadAssignment":{}}`), nil}))
		c.expect(t, "")
		c.close()
	})
}
