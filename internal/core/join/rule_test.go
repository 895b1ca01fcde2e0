package join

import (
	"testing"
	"time"
)

// A mechanism that is in the previous and in the new list must keep its answer, but must use the
// preference and the outlier detection of the new list.
func TestNewListChangesMechanism(t *testing.T) {
	now := time.Unix(0, 0)
	c, _ := New(now, Config{Patience: Patience, Kept: func(ID) (Kept, bool) { return Kept{}, false }}, []Mechanism{{Name: "whole"}})
	c.Started(now, 1, Hears{})
	for _, m := range []Mechanism{{OutlierDetection: "first"}, {OutlierDetection: "second"}, {OutlierDetection: "second", Prefer: "hints"}} {
		m.Name, m.Source = "a", "s"
		for _, a := range c.Replaced(now, 1, []Mechanism{m}) {
			if a.Kind == Start {
				c.Started(now, a.ID, Hears{})
				c.Answered(now, a.ID, Answer{Content: "endpoints"})
			}
		}
		got := c.Next()
		list := c.shown()
		if got.Kind != Send || len(list) != 1 || list[0].OutlierDetection != m.OutlierDetection || list[0].Prefer != m.Prefer || list[0].Answer.Content != "endpoints" {
			t.Errorf("the message is %+v of %+v, want the answer with the configuration of %+v", got, list, m)
		}
		c.Delivered(true, list[0].ID)
	}
}
