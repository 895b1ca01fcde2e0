package join

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The channel receives nothing until the first mechanism that has not failed answers, or the wait
// for it is over. It then receives the mechanisms that have answered or failed or, if none has
// answered, the reasons.
func TestNextFollowsTheRule(t *testing.T) {
	r := rand.New(rand.NewPCG(37, 74))
	counts := make(map[MessageKind]int)
	for range 20_000 {
		var list []Mechanism
		for range 2 + r.IntN(4) {
			list = append(list, Mechanism{Name: string(rune('a' + len(list)))})
		}
		now := time.Unix(0, 0)
		c, _ := New(Config{Patience: Patience, Kept: func(ID) (Kept, bool) { return Kept{}, false }}, list)
		phases := make([]Phase, len(list))
		for i := range list {
			c.Started(now, ID(i+1), Hears{})
		}
		late, sent := false, false
		for range 8 {
			if r.IntN(8) == 0 {
				c.Waited(now, Timer{ForFirst, 0})
				late = true
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
			want := told(phases, late, sent)
			sent = sent || want == Send
			counts[want]++
			if got.Kind != want && got.Kind != Nothing || want == Send && len(got.List) != len(phases)-count(phases, Outstanding) && got.Kind != Nothing {
				t.Fatalf("phases %v, late %v, sent %v: told %v, want kind %d", phases, late, sent, got, want)
			}
			if got.Kind == Nothing && !sent && want == Send {
				t.Fatalf("phases %v, late %v: no message, want an update", phases, late)
			}
		}
	}
	for kind := Await; kind <= Send; kind++ {
		if counts[kind] < 1000 {
			t.Errorf("only %d cases of kind %d", counts[kind], kind)
		}
	}
}

func told(phases []Phase, late, sent bool) MessageKind {
	switch {
	case sent:
		return Send
	case late && count(phases, Answered) > 0:
		return Send
	case late && count(phases, Failed) > 0:
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

// A mechanism that is also in the new list keeps its answer, but uses the new list's outlier
// detection.
func TestANewListChangesOutlierDetection(t *testing.T) {
	now := time.Unix(0, 0)
	c, _ := New(Config{Patience: Patience, Kept: func(ID) (Kept, bool) { return Kept{}, false }}, []Mechanism{{Name: "whole"}})
	c.Started(now, 1, Hears{})
	for _, config := range []string{"first", "second"} {
		for _, a := range c.Replaced(now, 1, []Mechanism{{Name: "a", Source: "s", OutlierDetection: config}}) {
			if a.Kind == Start {
				c.Started(now, a.ID, Hears{})
				if said, ok := c.Said(a.ID); ok {
					t.Errorf("before its answer, the mechanism has said %v", said)
				}
				c.Answered(now, a.ID, Answer{Content: "endpoints"})
				if said, ok := c.Said(a.ID); !ok || said.Content != "endpoints" {
					t.Errorf("the mechanism has said %v (%v), want its answer", said, ok)
				}
			}
		}
		got := c.Next()
		if got.Kind != Send || len(got.List) != 1 || got.List[0].OutlierDetection != config || got.List[0].Answer.Content != "endpoints" {
			t.Errorf("the message is %+v, want the answer with the %s configuration", got, config)
		}
		c.Taken(true, got.List[0].ID)
	}
}
