package join

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The channel must receive no update until the first mechanism that has not failed has answered, or
// the wait for it is over. The update must then contain the mechanisms that have answered or
// failed. If no mechanism has answered, the channel must receive the reasons.
func TestNextFollowsTheRule(t *testing.T) {
	r := rand.New(rand.NewPCG(37, 74))
	counts := make(map[MessageKind]int)
	for range 20_000 {
		var list []Mechanism
		for range 2 + r.IntN(4) {
			list = append(list, Mechanism{Name: string(rune('a' + len(list)))})
		}
		now := time.Unix(0, 0)
		c, _ := New(now, Config{Patience: Patience, Kept: func(ID) (Kept, bool) { return Kept{}, false }}, list)
		phases := make([]Phase, len(list))
		for i := range list {
			c.Started(now, ID(i+1), Hears{})
		}
		waitIsOver, hasSent := false, false
		for range 8 {
			if r.IntN(8) == 0 {
				now = now.Add(Patience)
				c.Tick(now)
				waitIsOver = true
			}
			switch i := r.IntN(len(list)); {
			case r.IntN(2) == 0:
				c.Failed(now, ID(i+1), string(rune('a'+r.IntN(26))))
				phases[i] = max(phases[i], Failed)
			default:
				c.Answered(now, ID(i+1), Answer{Content: r.Int()})
				phases[i] = Answered
			}
			got := c.Next()
			want := wantKind(phases, waitIsOver, hasSent)
			hasSent = hasSent || want == Send
			counts[want]++
			if got.Kind != want && got.Kind != Nothing || want == Send && len(c.shown()) != len(phases)-count(phases, Outstanding) && got.Kind != Nothing {
				t.Fatalf("phases %v, late %v, sent %v: told %v, want kind %d", phases, waitIsOver, hasSent, got, want)
			}
			if got.Kind == Nothing && !hasSent && want == Send {
				t.Fatalf("phases %v, late %v: no message, want an update", phases, waitIsOver)
			}
		}
	}
	for kind := Await; kind <= Send; kind++ {
		if counts[kind] < 1000 {
			t.Errorf("only %d cases of kind %d", counts[kind], kind)
		}
	}
}

func wantKind(phases []Phase, waitIsOver, hasSent bool) MessageKind {
	switch {
	case hasSent:
		return Send
	case waitIsOver && count(phases, Answered) > 0:
		return Send
	case waitIsOver && count(phases, Failed) > 0:
		return Report
	}
	for _, phase := range phases {
		switch phase {
		case Answered:
			return Send
		case Outstanding:
			return Await
		}
	}
	return Report
}

func count(phases []Phase, of Phase) (n int) {
	for _, phase := range phases {
		if phase == of {
			n++
		}
	}
	return n
}

// A mechanism that is in the previous and in the new list must keep its answer, but must use the
// outlier detection of the new list.
func TestNewListChangesOutlierDetection(t *testing.T) {
	now := time.Unix(0, 0)
	c, _ := New(now, Config{Patience: Patience, Kept: func(ID) (Kept, bool) { return Kept{}, false }}, []Mechanism{{Name: "whole"}})
	c.Started(now, 1, Hears{})
	for _, config := range []string{"first", "second"} {
		for _, a := range c.Replaced(now, 1, []Mechanism{{Name: "a", Source: "s", OutlierDetection: config}}) {
			if a.Kind == Start {
				c.Started(now, a.ID, Hears{})
				c.Answered(now, a.ID, Answer{Content: "endpoints"})
			}
		}
		got := c.Next()
		list := c.shown()
		if got.Kind != Send || len(list) != 1 || list[0].OutlierDetection != config || list[0].Answer.Content != "endpoints" {
			t.Errorf("the message is %+v of %+v, want the answer with the %s configuration", got, list, config)
		}
		c.Delivered(true, list[0].ID)
	}
}
